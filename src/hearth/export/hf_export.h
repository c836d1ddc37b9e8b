#pragma once
// A model as a Hugging Face folder that other tools load: dense weights with
// adapters merged into them, config, tokenizer and chat template. Weights pass
// through one tensor at a time.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hearth/io/tensor_type.h"
#include "hearth/models/load.h"

namespace hearth::exporting {

struct HfExportOptions {
  // f32, bf16 or f16; none: what most of the source's weights are, and bf16
  // where those are quantised.
  std::optional<io::TensorType> type;
  std::uint64_t shard_bytes = 5'000'000'000;
  bool force = false;  // replace a model that is there
  // What holds the tokenizer: a folder, a file in one, a .gguf; may be empty.
  std::string text_path;
  // A gate that no stock architecture has is written as model_type hearth,
  // which only this project reads, instead of refused.
  bool own_format = false;
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes)> progress;
};

struct HfExport {
  io::TensorType type = io::TensorType::bf16;
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
  std::size_t merged = 0;                    // adapters in the weights
  std::vector<std::string> tokenizer_files;  // empty: there was none
};

// The model may be loaded as Use::described. Throws UsageError, before anything
// is written, for a gate that the format cannot hold and for a target that is
// there without force.
HfExport export_hf(
    const models::LoadedModel& model,
    const std::string& folder,
    const HfExportOptions& options = {}
);

}  // namespace hearth::exporting
