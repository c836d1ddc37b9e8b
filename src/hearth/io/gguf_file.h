#pragma once
// A GGUF file as it stands: metadata and tensors under their own names, sizes
// innermost first. Every type, size and offset is checked when it is opened;
// what the names mean is gguf_source's business.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/mapped_file.h"
#include "hearth/io/gguf_metadata.h"
#include "hearth/io/tensor_type.h"

namespace hearth::io {

struct GgufTensor {
  std::string name;
  TensorType type = TensorType::f32;
  std::vector<std::int64_t> shape;  // row-major, outermost first
  std::uint64_t offset = 0;         // in the file
  std::size_t bytes = 0;
};

class GgufFile {
 public:
  // Throws IoError or FormatError, one line with file and offset.
  explicit GgufFile(const std::string& path);
  // A file whose bytes are in memory; they must outlive it.
  GgufFile(std::span<const std::byte> bytes, const std::string& name);

  const GgufMetadata& metadata() const { return metadata_; }
  // The tensors in the order of the file.
  std::span<const GgufTensor> tensors() const { return tensors_; }
  std::span<const std::byte> bytes(const GgufTensor& tensor) const {
    return bytes_.subspan(tensor.offset, tensor.bytes);
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  // Drops a range's pages from this process's memory until they are read again.
  void release(std::uint64_t offset, std::size_t size) const {
    file_.advise(MappedFile::Access::kDone, offset, size);
  }
  const std::string& name() const { return metadata_.name(); }

 private:
  MappedFile file_;
  std::span<const std::byte> bytes_;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;

  void read_tensors();
  void check_places(std::uint64_t data_begin, std::uint64_t alignment);
};

}  // namespace hearth::io
