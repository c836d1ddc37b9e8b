#include "hearth/cli/model/model_report.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/progress.h"
#include "hearth/base/units.h"
#include "hearth/hardware/machine.h"
#include "hearth/io/tensor_scan.h"
#include "hearth/io/weight_names.h"
#include "hearth/models/load.h"
#include "hearth/text/chat/chat.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

std::uint64_t elements(const io::TensorInfo& tensor) {
  const io::TensorUnit unit = io::unit_of(tensor.type);
  return tensor.bytes / unit.bytes * unit.elements;
}

// "model.layers.12.mlp" is of layer 12, whatever it is called there; -1 for
// what is in no layer.
std::int64_t layer_of(std::string_view name) {
  for (const std::string_view mark : {".layers.", ".h."}) {
    const std::size_t at = name.find(mark);
    if (at == name.npos) continue;
    std::int64_t number = -1;
    const char* begin = name.data() + at + mark.size();
    std::from_chars(begin, name.data() + name.size(), number);
    return number;
  }
  return -1;
}

class Inspector {
 public:
  explicit Inspector(std::shared_ptr<const io::ModelSource> source)
      : source_(std::move(source)), model_(*source_) {
    report_.path = model_.path();
    report_.facts = io::read_model_facts(model_.config(), model_.path());
    const auto tensors = model_.tensors();
    report_.tensors.assign(tensors.begin(), tensors.end());
    folder_ = fs::is_directory(report_.path);
    report_.format = !folder_                       ? "GGUF file"
                     : report_.facts.quant_bits > 0 ? "MLX-quantised folder"
                                                    : "Hugging Face folder";
  }

  ModelReport run(bool check) {
    sizes();
    tokenizer();
    odd_config();
    odd_tensors();
    would_load();
    if (check) look_at_weights();
    return std::move(report_);
  }

 private:
  void warn(std::string text) { report_.warnings.push_back(std::move(text)); }

  // What a tensor counts for: packed weights hold more than their words, and
  // their scales are not parameters.
  std::uint64_t parameters(const io::TensorInfo& tensor) const {
    const std::string& name = tensor.name;
    if (report_.facts.quant_bits == 0) return elements(tensor);
    const std::string stem = name.substr(0, name.rfind('.'));
    const io::TensorInfo* scales = model_.find(stem + ".scales");
    if (scales == nullptr) return elements(tensor);
    if (!name.ends_with(".weight")) return 0;
    return elements(*scales) *
           static_cast<std::uint64_t>(report_.facts.quant_group);
  }

  void sizes() {
    std::set<std::string> files;
    for (const io::TensorInfo& tensor : report_.tensors) {
      TypeShare& share = report_.types[std::string(io::name_of(tensor.type))];
      const std::uint64_t count = parameters(tensor);
      ++share.tensors;
      share.parameters += count;
      share.bytes += tensor.bytes;
      report_.parameters += count;
      report_.memory_bytes += tensor.bytes;
      files.insert(tensor.file);
    }
    std::error_code ignored;
    for (const std::string& file : files) {
      report_.disk_bytes += fs::file_size(file, ignored);
    }
  }

  void tokenizer() {
    try {
      const auto t = text::Tokenizer::load(report_.path);
      report_.tokenizer = TokenizerFacts{
          std::string(t->format()),
          std::string(t->model_kind()),
          t->vocab_size(),
          t->id_limit(),
          t->bos_id(),
          t->eos_id()
      };
    } catch (const Error& e) {
      warn(fmt::format("no tokenizer could be read: {}", e.what()));
      return;
    }
    const auto rows = static_cast<std::size_t>(report_.facts.vocab);
    if (rows > 0 && report_.tokenizer->id_limit > rows) {
      warn(
          fmt::format(
              "the tokenizer has ids up to {}, the embedding only {} rows",
              report_.tokenizer->id_limit - 1, rows
          )
      );
    }
    try {
      text::ChatTemplates::load(report_.path);
      report_.has_template = true;
    } catch (const FormatError&) {
      // Base models have none; that is not odd.
    } catch (const Error& e) {
      warn(fmt::format("the chat template cannot be used: {}", e.what()));
    }
  }

  void odd_config() {
    const io::ModelFacts& f = report_.facts;
    if (f.architecture.empty()) warn("the config names no architecture");
    if (folder_ && model_.generation_config().empty()) {
      warn(
          "there is no generation_config.json: end tokens come from config.json"
      );
    }
    const Json& config = model_.config();
    if (folder_ && config.contains("dtype") && config.contains("torch_dtype") &&
        config["dtype"] != config["torch_dtype"]) {
      warn("config.json has dtype and torch_dtype, and they differ");
    }
    if (f.heads > 0 && f.kv_heads > 0 && f.heads % f.kv_heads != 0) {
      warn(fmt::format("{} heads do not divide among {}", f.heads, f.kv_heads));
    }
    const std::uint64_t cache =
        f.kv_bytes_per_token() * static_cast<std::uint64_t>(f.context);
    const std::size_t memory = hardware::detect().memory.total;
    if (memory > 0 && cache + report_.memory_bytes > memory) {
      warn(
          fmt::format(
              "a context of {} needs {} of cache beside {} of weights, more "
              "than this machine's {}",
              f.context, format_bytes(cache),
              format_bytes(report_.memory_bytes), format_bytes(memory)
          )
      );
    }
  }

  void odd_tensors() {
    const io::ModelFacts& f = report_.facts;
    std::vector<std::string> unused;
    for (const io::TensorInfo& tensor : report_.tensors) {
      const std::string& name = tensor.name;
      const bool past = f.layers > 0 && layer_of(name) >= f.layers;
      const bool buffer = name.ends_with("rotary_emb.inv_freq") ||
                          name.ends_with(".attn.bias") ||
                          name.ends_with(".attn.masked_bias");
      const bool head = f.tied && io::role_of(name).role == io::Role::head;
      if (past || buffer || head) unused.push_back(name);
    }
    if (!unused.empty()) {
      warn(
          fmt::format(
              "{} tensors are not used, such as {}", unused.size(), unused[0]
          )
      );
    }
    const auto embedding =
        std::ranges::find_if(report_.tensors, [](const io::TensorInfo& t) {
          return io::role_of(t.name).role == io::Role::embedding;
        });
    if (embedding == report_.tensors.end()) {
      warn("there is no token embedding under a name that is known");
    } else if (f.vocab > 0 && embedding->shape[0] != f.vocab) {
      warn(
          fmt::format(
              "the embedding has {} rows, the config says {}",
              embedding->shape[0], f.vocab
          )
      );
    }
  }

  // Architecture, config keys, names and shapes, as running it would check
  // them.
  void would_load() {
    try {
      models::load_model(source_, {.use = models::Use::described});
    } catch (const Error& e) {
      warn(fmt::format("it cannot be run: {}", e.what()));
    }
  }

  void look_at_weights() {
    Progress progress({"checking weights", "B", report_.memory_bytes});
    report_.checked = true;
    std::string first;
    std::uint64_t tensors = 0;
    for (const io::TensorInfo& tensor : report_.tensors) {
      const io::TensorData data = model_.data(tensor);
      const std::uint64_t bad = io::count_non_finite(tensor.type, data.bytes);
      if (bad > 0 && first.empty()) first = tensor.name;
      tensors += bad > 0 ? 1 : 0;
      report_.non_finite += bad;
      progress.add(tensor.bytes);
    }
    if (report_.non_finite > 0) {
      warn(
          fmt::format(
              "{} values in {} tensors are NaN or infinite, first in {}",
              report_.non_finite, tensors, first
          )
      );
    }
  }

  std::shared_ptr<const io::ModelSource> source_;
  const io::ModelSource& model_;
  ModelReport report_;
  bool folder_ = false;
};

}  // namespace

ModelReport inspect_model(
    std::shared_ptr<const io::ModelSource> model,
    bool check
) {
  return Inspector(std::move(model)).run(check);
}

}  // namespace hearth::cli
