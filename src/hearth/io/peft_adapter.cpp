#include "hearth/io/peft_adapter.h"

#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/io/folder_writer_impl.h"
#include "hearth/io/message_impl.h"
#include "hearth/io/strict_json.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "base_model.model.";
constexpr const char* kWeights = "adapter_model.safetensors";
constexpr const char* kConfig = "adapter_config.json";

struct Found {
  const TensorInfo *a = nullptr, *b = nullptr, *magnitude = nullptr;
};

class Sorter {
 public:
  Sorter(const SafetensorsFile& file, const PeftConfig& config)
      : file_(file), config_(config) {
    for (const TensorInfo& tensor : file.tensors()) place(tensor);
  }

  std::vector<PeftModule> modules() const {
    std::vector<PeftModule> out;
    for (const auto& [name, found] : found_) out.push_back(module(name, found));
    return out;
  }
  std::vector<TensorInfo> saved;

 private:
  [[noreturn]] void fail(std::string_view name, std::string_view what) const {
    throw FormatError::at(
        file_.name(), 0, fmt::format("{} {}", in_quotes(name), what)
    );
  }

  void place(const TensorInfo& tensor) {
    std::string_view name = tensor.name;
    if (!name.starts_with(kPrefix)) {
      fail(name, fmt::format("must begin with {}", kPrefix));
    }
    if (!is_floating(tensor.type)) fail(name, "must hold floating numbers");
    name.remove_prefix(kPrefix.size());
    const std::size_t at = name.find(".lora_");
    if (at == name.npos) return save(tensor, name);
    const std::string_view kind = name.substr(at + 1);
    Found& found = found_[std::string(name.substr(0, at))];
    if (kind == kLoraA) {
      found.a = &tensor;
    } else if (kind == kLoraB) {
      found.b = &tensor;
    } else if (kind == kLoraMagnitude ||
               kind == fmt::format("{}.weight", kLoraMagnitude)) {
      found.magnitude = &tensor;
    } else {
      fail(tensor.name, "is a kind of adapter tensor that is not known");
    }
  }

  // PEFT saves embeddings of its own accord when the vocabulary has grown.
  void save(const TensorInfo& tensor, std::string_view name) {
    const std::string_view module = name.substr(0, name.rfind('.'));
    PeftConfig kept;
    kept.targets = config_.modules_to_save;
    kept.targets.insert(kept.targets.end(), {"embed_tokens", "lm_head", "wte"});
    if (!kept.is_target(module)) {
      fail(tensor.name, "is neither a LoRA matrix nor in modules_to_save");
    }
    saved.push_back(tensor);
    saved.back().name = name;
  }

  PeftModule module(const std::string& name, const Found& found) const {
    if (!found.a || !found.b) fail(name, "must have both lora_A and lora_B");
    if (!config_.is_target(name)) fail(name, "is not in target_modules");
    const auto rank = config_.rank_of(name);
    const auto& a = found.a->shape;
    const auto& b = found.b->shape;
    if (a.size() != 2 || b.size() != 2 || a[0] != rank || b[1] != rank) {
      fail(
          name,
          fmt::format(
              "must have lora_A [{0}, in] and lora_B [out, {0}], got [{1}] "
              "and [{2}]",
              rank, fmt::join(a, ", "), fmt::join(b, ", ")
          )
      );
    }
    PeftModule out{name, *found.a, *found.b, std::nullopt};
    if (config_.use_dora != (found.magnitude != nullptr)) {
      fail(
          name, "must have lora_magnitude_vector exactly when use_dora is set"
      );
    }
    if (found.magnitude) {
      std::int64_t count = 1;
      for (const std::int64_t size : found.magnitude->shape) count *= size;
      if (count != b[0]) {
        fail(name, fmt::format("must have a magnitude for each of {}", b[0]));
      }
      out.magnitude = *found.magnitude;
    }
    return out;
  }

  const SafetensorsFile& file_;
  const PeftConfig& config_;
  std::map<std::string, Found> found_;
};

void check_rank(const PeftConfig& config, const PeftModuleToWrite& module) {
  const std::int64_t rank = config.rank_of(module.name);
  const auto& a = module.a.shape;
  const auto& b = module.b.shape;
  const bool ok = a.size() == 2 && b.size() == 2 && a[0] == rank &&
                  b[1] == rank &&
                  config.use_dora == module.magnitude.has_value() &&
                  config.is_target(module.name);
  if (!ok) {
    throw UsageError(
        fmt::format(
            "[io.write_peft_adapter] {0} must be a target with lora_A [{1}, "
            "in] "
            "and lora_B [out, {1}], and a magnitude exactly with DoRA",
            in_quotes(module.name), rank
        )
    );
  }
}

}  // namespace

PeftAdapter PeftAdapter::open(const std::string& folder) {
  std::error_code ignored;
  for (const char* name : {kConfig, kWeights}) {
    if (!fs::exists(fs::path(folder) / name, ignored)) {
      throw FormatError::at(
          folder, 0, fmt::format("is not an adapter: it has no {}", name)
      );
    }
  }
  const std::string config = (fs::path(folder) / kConfig).string();
  PeftAdapter out;
  out.config_ = parse_peft_config(read_config_file(config), config);
  out.file_ = SafetensorsFile::open((fs::path(folder) / kWeights).string());
  Sorter sorter(*out.file_, out.config_);
  out.modules_ = sorter.modules();
  out.saved_ = std::move(sorter.saved);
  if (out.modules_.empty()) {
    throw FormatError::at(out.file_->name(), 0, "has no LoRA matrices");
  }
  return out;
}

TensorData PeftAdapter::data(const TensorInfo& tensor) const {
  return {file_->bytes(tensor), file_};
}

void write_peft_adapter(
    const std::string& path,
    const PeftConfig& config,
    std::vector<PeftModuleToWrite> modules,
    std::vector<TensorToWrite> saved,
    bool force
) {
  std::vector<TensorToWrite> tensors;
  for (PeftModuleToWrite& module : modules) {
    check_rank(config, module);
    const auto add = [&](TensorToWrite& tensor, std::string_view kind) {
      tensor.name = fmt::format("{}{}.{}", kPrefix, module.name, kind);
      tensors.push_back(std::move(tensor));
    };
    add(module.a, kLoraA);
    add(module.b, kLoraB);
    if (module.magnitude) add(*module.magnitude, kLoraMagnitude);
  }
  for (TensorToWrite& tensor : saved) {
    tensor.name.insert(0, kPrefix);
    tensors.push_back(std::move(tensor));
  }
  AtomicFolder folder(path, force, kConfig);
  write_file_atomically(
      folder.file(kConfig), to_json_text(to_json(config)) + "\n"
  );
  write_safetensors(folder.file(kWeights), std::move(tensors));
  folder.commit();
}

}  // namespace hearth::io
