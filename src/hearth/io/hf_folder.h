#pragma once
// A Hugging Face folder: config.json, generation_config.json and the tensors
// of model.safetensors or of the shards that model.safetensors.index.json
// lists. MLX-quantised folders are the same thing, with `quantization` in the
// config and X.weight, X.scales, X.biases for each quantised X.
#include <memory>
#include <string>

#include "hearth/io/model_source.h"

namespace hearth::io {

std::shared_ptr<const ModelSource> open_hf_folder(const std::string& path);

}  // namespace hearth::io
