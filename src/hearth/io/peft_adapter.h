#pragma once
// A LoRA adapter as PEFT keeps it: adapter_config.json and
// adapter_model.safetensors. Modules carry the base model's names.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/io/peft_config.h"
#include "hearth/io/safetensors.h"
#include "hearth/io/safetensors_writer.h"

namespace hearth::io {

struct PeftModule {
  std::string name;                     // "model.layers.0.self_attn.q_proj"
  TensorInfo a;                         // [rank, in]
  TensorInfo b;                         // [out, rank]
  std::optional<TensorInfo> magnitude;  // [out], with DoRA
};

class PeftAdapter {
 public:
  // Throws IoError or FormatError, one line that names the file.
  static PeftAdapter open(const std::string& folder);

  const PeftConfig& config() const { return config_; }
  // Sorted by name, each with both matrices of the rank the config gives it.
  const std::vector<PeftModule>& modules() const { return modules_; }
  // Whole weights that replace the base model's, under the base's names.
  const std::vector<TensorInfo>& saved() const { return saved_; }
  TensorData data(const TensorInfo& tensor) const;

 private:
  PeftConfig config_;
  std::shared_ptr<const SafetensorsFile> file_;
  std::vector<PeftModule> modules_;
  std::vector<TensorInfo> saved_;
};

struct PeftModuleToWrite {
  std::string name;
  TensorToWrite a, b;  // their names are set here
  std::optional<TensorToWrite> magnitude;
};

// A folder that peft loads, there whole or not at all. Throws UsageError when
// a module's rank is not the config's, or the target is there without force.
void write_peft_adapter(
    const std::string& path,
    const PeftConfig& config,
    std::vector<PeftModuleToWrite> modules,
    std::vector<TensorToWrite> saved = {},
    bool force = false
);

}  // namespace hearth::io
