#include "hearth/export/hf_export.h"

#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"
#include "hearth/data/prepared_data.h"
#include "hearth/io/hf_folder_writer.h"
#include "hearth/models/family.h"
#include "hearth/models/save.h"
#include "hearth/text/tokenizer/gguf_tokenizer_files.h"

namespace hearth::exporting {
namespace {

namespace fs = std::filesystem;
using io::TensorType;

// What most bytes of the file are.
TensorType type_of(const io::ModelSource& source) {
  std::map<TensorType, std::size_t> bytes;
  for (const auto& t : source.tensors()) bytes[t.type] += t.bytes;
  const auto most = std::ranges::max_element(bytes, {}, [](const auto& entry) {
    return entry.second;
  });
  const TensorType type = most == bytes.end() ? TensorType::f32 : most->first;
  const bool dense = type == TensorType::f32 || type == TensorType::f16 ||
                     type == TensorType::bf16;
  return dense ? type : TensorType::bf16;
}

const char* dtype_word(TensorType type) {
  return type == TensorType::f32    ? "float32"
         : type == TensorType::bf16 ? "bfloat16"
                                    : "float16";
}

// The gate as it stands now; a schedule is where its steps have taken it.
nn::GateConfig standing(const nn::Gate& gate) {
  nn::GateConfig c = gate.config();
  if (c.alpha == "linear" || c.alpha == "cosine") {
    c.value = nn::scheduled_alpha(c, gate.step());
    c.alpha = "fixed";
  }
  return c;
}

std::string alpha_words(const nn::GateConfig& c) {
  return c.alpha == "fixed" ? fmt::format("alpha {:.4g}", c.value)
                            : fmt::format("{} alpha", c.alpha);
}

// A full gate is Llama's MLP with another activation; a partial one is in no
// stock architecture.
void describe_gate(models::Decoder& decoder, bool own, Json& config) {
  const auto gates = decoder.gates();
  if (gates.empty()) return;
  const nn::GateConfig gate = standing(*gates.front());
  if (gate.is_plain_glu()) {
    config.erase("gate");
    const models::Family& llama = *models::family_named("llama");
    config["model_type"] = llama.model_type;
    config["architectures"] = Json::array({llama.architecture});
    config["hidden_act"] = ops::name_of(gate.form().act);
    return;
  }
  if (!own) {
    throw UsageError(
        fmt::format(
            "a stock Hugging Face model cannot hold the gate {} with {}: its "
            "MLPs have alpha 1",
            gate.unit, alpha_words(gate)
        ),
        "--own-format writes model_type hearth, which holds it and which "
        "hearth reads"
    );
  }
  config["gate"]["step"] = gates.front()->step();
}

Json config_for(
    const models::LoadedModel& model,
    TensorType type,
    bool own_format
) {
  Json config = model.source->config();
  config.erase("quantization");
  config.erase("quantization_config");
  const bool old_key = config.contains("torch_dtype");
  if (old_key) config["torch_dtype"] = dtype_word(type);
  if (!old_key || config.contains("dtype")) config["dtype"] = dtype_word(type);
  describe_gate(*model.decoder, own_format, config);
  return config;
}

using Texts = std::vector<std::pair<std::string, std::string>>;

Texts tokenizer_texts(const std::string& path) {
  Texts out;
  if (path.empty()) return out;
  if (path.ends_with(".gguf")) {
    for (auto& [name, text] : text::gguf_tokenizer_files(path)) {
      out.emplace_back(std::move(name), std::move(text));
    }
    return out;
  }
  const auto take = [&](const fs::path& file, const std::string& name) {
    out.emplace_back(name, std::string(MappedFile(file.string()).text()));
  };
  for (const auto& file : data::tokenizer_files(path)) {
    take(file, fs::path(file).filename().string());
  }
  const std::string named = "additional_chat_templates";
  if (!fs::is_directory(fs::path(path) / named)) return out;
  for (const auto& entry : fs::directory_iterator(fs::path(path) / named)) {
    if (entry.path().extension() != ".jinja") continue;
    take(entry.path(), named + "/" + entry.path().filename().string());
  }
  return out;
}

}  // namespace

HfExport export_hf(
    const models::LoadedModel& model,
    const std::string& folder,
    const HfExportOptions& options
) {
  HfExport out;
  out.type = options.type.value_or(type_of(*model.source));
  const Json config = config_for(model, out.type, options.own_format);
  auto tensors = models::tensors_to_write(model, out.type);
  out.tensors = tensors.size();
  for (const auto& t : tensors) out.bytes += io::bytes_of(t);
  std::uint64_t done = 0;
  for (auto& t : tensors) {
    t.data = [&, size = io::bytes_of(t), read = std::move(t.data)] {
      auto data = read();
      done += size;
      if (options.progress) options.progress(done, out.bytes);
      return data;
    };
  }
  for (const nn::Linear* linear : model.decoder->linears()) {
    out.merged += linear->lora() != nullptr ? 1 : 0;
  }
  io::HfFolderOptions write;
  write.shard_bytes = options.shard_bytes;
  write.force = options.force;
  write.texts = tokenizer_texts(options.text_path);
  for (const auto& [name, text] : write.texts) {
    out.tokenizer_files.push_back(name);
  }
  io::write_hf_folder(
      folder, config, model.source->generation_config(), std::move(tensors),
      write
  );
  return out;
}

}  // namespace hearth::exporting
