#pragma once
// A model source whose tensors lie in files: it also says which of them may be
// read from the file directly rather than through the mapping.
#include "hearth/io/model_source.h"

namespace hearth::io {

class FileSource {
 public:
  FileSource() = default;
  virtual ~FileSource() = default;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  // Whether data() has the very bytes at tensor.offset of tensor.file.
  virtual bool plain(const TensorInfo& tensor) const = 0;
  // How long reading and checking configs and headers took.
  virtual double header_seconds() const { return 0; }
};

// Asks any source the same; false and 0 where it is no FileSource.
bool is_plain(const ModelSource& source, const TensorInfo& tensor);
double header_seconds(const ModelSource& source);

}  // namespace hearth::io
