#pragma once
// Text that a byte order mark says is UTF-16, which Windows' programs write,
// read as UTF-8.
#include <memory>

#include "hearth/data/read/dataset_stream.h"

namespace hearth::data {

// The same stream where it does not begin with such a mark.
std::unique_ptr<ByteStream> read_as_utf8(std::unique_ptr<ByteStream> stream);

}  // namespace hearth::data
