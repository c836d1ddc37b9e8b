#include "hearth/io/file_source.h"

namespace hearth::io {

bool is_plain(const ModelSource& source, const TensorInfo& tensor) {
  const auto* files = dynamic_cast<const FileSource*>(&source);
  return files != nullptr && files->plain(tensor);
}

double header_seconds(const ModelSource& source) {
  const auto* files = dynamic_cast<const FileSource*>(&source);
  return files == nullptr ? 0 : files->header_seconds();
}

}  // namespace hearth::io
