#pragma once
// Looks for numbers that are none in a tensor's bytes.
#include <cstddef>
#include <cstdint>
#include <span>

#include "hearth/io/tensor_type.h"

namespace hearth::io {

// NaN and infinite elements; in quantised types, scales. 0 for whole numbers.
// The bytes need no alignment.
std::uint64_t count_non_finite(
    TensorType type,
    std::span<const std::byte> bytes
);

}  // namespace hearth::io
