#pragma once
// A safetensors file as named tensors, mapped rather than read:
//
//   u64 length of the header, the header as JSON, the tensors' bytes
//
// Everything the header says is checked when the file is opened: names given
// twice, types, shapes against sizes, and that the tensors lie one after the
// other from the first byte to the last. What a tensor means is for others.
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/mapped_file.h"
#include "hearth/io/model_source.h"

namespace hearth::io {

class SafetensorsFile {
 public:
  // Throws IoError or FormatError, one line with file and offset.
  static std::shared_ptr<const SafetensorsFile> open(const std::string& path);
  // A file whose bytes are in memory; they must outlive it.
  SafetensorsFile(std::span<const std::byte> bytes, std::string name);
  explicit SafetensorsFile(MappedFile file);

  // Sorted by name.
  std::span<const TensorInfo> tensors() const { return tensors_; }
  // `__metadata__`, as it stands.
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }
  // The bytes of a tensor of this file. Aligned as the writer chose, often not.
  std::span<const std::byte> bytes(const TensorInfo& tensor) const;
  // Drops the tensor's pages from this process's memory; they come back when
  // they are read again.
  void release(const TensorInfo& tensor) const {
    file_.advise(MappedFile::Access::kDone, tensor.offset, tensor.bytes);
  }
  const std::string& name() const { return name_; }

 private:
  MappedFile file_;
  std::string name_;
  std::span<const std::byte> bytes_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::string> metadata_;

  void read_header();
  void check_order(std::size_t data_begin) const;
};

// "F32", "BF16" ...: what a safetensors header calls a type. Throws UsageError
// for a type that the format does not have.
std::string_view safetensors_name(TensorType type);

}  // namespace hearth::io
