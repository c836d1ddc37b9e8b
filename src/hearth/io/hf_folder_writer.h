#pragma once
// Writes a Hugging Face folder: config.json, generation_config.json, the
// weights as one safetensors file or as shards with an index, and the
// tokenizer's files carried along. The folder is there whole or not at all.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/io/safetensors_writer.h"

namespace hearth::io {

struct HfFolderOptions {
  // A shard holds at most this many bytes of tensors, or one tensor.
  std::uint64_t shard_bytes = 5'000'000'000;
  // Replace a folder that is there. Without it that is refused.
  bool force = false;
  // A folder whose tokenizer and chat template files are copied; may be empty.
  std::string carry_from;
  // More files, name and text, such as a tokenizer made from another format.
  std::vector<std::pair<std::string, std::string>> texts;
};

// Shards take the tensors in the order given. `generation_config` is left out
// when it is empty. Throws UsageError before anything is written when the
// target is there and force is off, and when it is there and is not a model:
// force replaces models, it does not empty other folders.
void write_hf_folder(
    const std::string& path,
    const Json& config,
    const Json& generation_config,
    std::vector<TensorToWrite> tensors,
    const HfFolderOptions& options = {}
);

// The files of a folder that belong to its tokenizer and chat template.
std::vector<std::string> tokenizer_files(const std::string& folder);

}  // namespace hearth::io
