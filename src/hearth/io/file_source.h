#pragma once
// What a model source can say beside its tensors when they lie in files: which
// of them may be read from there past the mapping.
#include "hearth/io/model_source.h"

namespace hearth::io {

class FileSource {
 public:
  FileSource() = default;
  virtual ~FileSource() = default;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  // Whether data() is what lies at tensor.offset of tensor.file as it stands.
  virtual bool plain(const TensorInfo& tensor) const = 0;
  // How long reading and checking configs and headers took.
  virtual double header_seconds() const { return 0; }
};

// Asks any source the same; false and 0 where it is no FileSource.
bool is_plain(const ModelSource& source, const TensorInfo& tensor);
double header_seconds(const ModelSource& source);

}  // namespace hearth::io
