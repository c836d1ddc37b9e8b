#pragma once
// The weights of a checkpoint as a model source, in the layout of their own
// family's files.
#include <optional>

#include "hearth/io/safetensors.h"

namespace hearth::train {

class RunSource : public io::ModelSource {
 public:
  // folder has config.json, checkpoint the weights, whose checksum is compared
  // first. gate_step is where a scheduled gate stands with them.
  RunSource(
      std::string folder,
      const std::string& checkpoint,
      std::optional<long> gate_step = {}
  );

  const std::string& path() const override { return folder_; }
  const Json& config() const override { return config_; }
  const Json& generation_config() const override { return generation_; }
  std::span<const io::TensorInfo> tensors() const override { return tensors_; }
  io::TensorData data(const io::TensorInfo& tensor) const override;

 private:
  std::string folder_;
  Json config_, generation_ = Json::object();
  std::shared_ptr<const io::SafetensorsFile> file_;
  std::vector<io::TensorInfo> tensors_;
  bool transposed_;  // GPT-2: files hold the transpose of what we train

  bool is_transposed(const io::TensorInfo& tensor) const;
};

}  // namespace hearth::train
