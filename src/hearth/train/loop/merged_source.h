#pragma once
// A model with its adapters merged in, as a source: what is adapted is dense
// and made when it is asked for, the rest stays as the base has it.
#include "hearth/io/safetensors_writer.h"
#include "hearth/models/load.h"

namespace hearth::train {

class MergedSource : public io::ModelSource {
 public:
  // Adapters are attached and filled; weights may be Use::described.
  explicit MergedSource(models::LoadedModel model);
  MergedSource(const MergedSource&) = delete;
  MergedSource& operator=(const MergedSource&) = delete;

  const std::string& path() const override { return model_.source->path(); }
  const Json& config() const override { return config_; }
  const Json& generation_config() const override {
    return model_.source->generation_config();
  }
  std::span<const io::TensorInfo> tensors() const override { return tensors_; }
  io::TensorData data(const io::TensorInfo& tensor) const override;
  void release(const io::TensorInfo& tensor) const override;

 private:
  models::LoadedModel model_;
  Json config_;  // the base's, its gates as they stand
  std::vector<io::TensorToWrite> merged_;  // refer to model_
  std::vector<io::TensorInfo> tensors_;

  // Null for what the base holds.
  const io::TensorToWrite* find_merged(const io::TensorInfo& tensor) const;
};

}  // namespace hearth::train
