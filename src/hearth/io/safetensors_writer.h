#pragma once
// Writes a safetensors file tensor by tensor, so that a model is never in
// memory twice. The file is there whole or not at all.
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hearth/io/model_source.h"

namespace hearth::io {

struct TensorToWrite {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;
  // Called once, when the tensor is to be written; what it returns is freed
  // afterwards.
  std::function<TensorData()> data;
};

// A tensor of another model as it stands; the model must outlive the call.
TensorToWrite copy_of(const ModelSource& model, const TensorInfo& tensor);
// Bytes that outlive the writing.
TensorToWrite tensor_of(
    std::string name,
    TensorType type,
    std::vector<std::int64_t> shape,
    std::span<const std::byte> bytes
);

// What the tensor takes in the file. Throws UsageError for a shape that no
// tensor can have or a type that the format does not have.
std::uint64_t bytes_of(const TensorToWrite& tensor);

// The widest types first, then by name: each tensor is aligned to its type,
// the first to 64 bytes, and the same tensors give the same file. Throws
// UsageError before anything is written when a name is given twice or a type
// cannot be held, and when a tensor's bytes are not what its shape takes.
void write_safetensors(
    const std::string& path,
    std::vector<TensorToWrite> tensors,
    const std::map<std::string, std::string>& metadata = {{"format", "pt"}}
);

}  // namespace hearth::io
