#pragma once
// Arrays as a safetensors file's tensors and back.
#include <span>

#include "hearth/io/safetensors_writer.h"
#include "hearth/optim/update_rule.h"

namespace hearth::train {

// Over the array's memory. Throws UsageError when it is not evaluated and
// row-major or of a type that no checkpoint holds.
io::TensorToWrite tensor_of(const optim::NamedArray& a);

// A leaf with a tensor's numbers.
optim::NamedArray array_of(
    const io::TensorInfo& tensor,
    std::span<const std::byte> bytes
);

}  // namespace hearth::train
