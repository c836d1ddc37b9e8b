#pragma once
// Arrays as a safetensors file's tensors and back.
#include <span>

#include "hearth/io/safetensors_writer.h"
#include "hearth/optim/update_rule.h"

namespace hearth::train {

// Over the array's memory. Throws UsageError when it is not evaluated and
// row-major or of a type that no checkpoint holds.
io::TensorToWrite tensor_of(const optim::NamedArray& a);

// The other way round, over the same bytes.
optim::StoredArray stored_array(
    const io::TensorInfo& tensor,
    std::span<const std::byte> bytes
);

}  // namespace hearth::train
