#pragma once
// Counts NaN and infinity in a tensor's bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "hearth/io/tensor_type.h"

namespace hearth::io {

// How many elements (in quantised types: scales) are NaN or infinite; 0 for
// integer types. The bytes need no alignment.
std::uint64_t count_non_finite(
    TensorType type,
    std::span<const std::byte> bytes
);

}  // namespace hearth::io
