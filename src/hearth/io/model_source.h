#pragma once
// A model on disk as named tensors and a config, whatever the file format:
// a Hugging Face folder, an MLX-quantised folder or a GGUF file. Names, shapes
// and the config are Hugging Face's. Tensors stay as the file has them
// (quantised ones too) and are mapped, not read; every offset was checked when
// the source was opened.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/io/tensor_type.h"

namespace hearth::io {

struct TensorInfo {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;  // row-major, outermost first
  std::size_t bytes = 0;
  std::string file;          // for messages
  std::uint64_t offset = 0;  // in that file
  // Rows and columns are swapped against Hugging Face's: a quantised GPT-2
  // weight of a GGUF file ([out, in] there, [in, out] here), whose blocks
  // cannot be transposed. shape says how the bytes lie.
  bool transposed = false;
};

// A tensor's bytes, valid while owner lives.
struct TensorData {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

class ModelSource {
 public:
  virtual ~ModelSource() = default;

  virtual const std::string& path() const = 0;
  // The model's config as config.json has it; a GGUF file's metadata under the
  // same keys.
  virtual const Json& config() const = 0;
  // An empty object where there is none.
  virtual const Json& generation_config() const = 0;
  // Sorted by name.
  virtual std::span<const TensorInfo> tensors() const = 0;
  // Row-major bytes in the layout Hugging Face has: rows that a GGUF converter
  // has permuted are put back.
  virtual TensorData data(const TensorInfo& tensor) const = 0;
  // Called when the tensor was read and is not needed soon: drops its mapped
  // pages from this process's memory; they come back when it is read again.
  virtual void release(const TensorInfo&) const {}

  // Null when there is none of that name.
  const TensorInfo* find(std::string_view name) const;
};

// A folder or a .gguf file. Throws IoError or FormatError, one line that names
// the file.
std::shared_ptr<const ModelSource> open_model(const std::string& path);

}  // namespace hearth::io
