#pragma once
// The bytes a shape takes, or nothing when they overflow.
#include <cstdint>
#include <optional>
#include <span>

#include "hearth/io/tensor_type.h"

namespace hearth::io {

inline std::optional<std::uint64_t> tensor_elements(
    std::span<const std::int64_t> shape
) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 56;
  std::uint64_t count = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto factor = static_cast<std::uint64_t>(size);
    if (factor == 0) {
      empty = true;
    } else if (count > kMost / factor) {
      return std::nullopt;
    } else {
      count *= factor;
    }
  }
  return empty ? 0 : count;
}

// A row of a quantised type must be a whole number of blocks.
inline std::optional<std::uint64_t> tensor_bytes(
    TensorType type,
    std::span<const std::int64_t> shape
) {
  const auto count = tensor_elements(shape);
  const TensorUnit unit = unit_of(type);
  if (!count) return std::nullopt;
  if (unit.elements > 1) {
    const auto block = static_cast<std::int64_t>(unit.elements);
    if (shape.empty() || shape.back() % block != 0) return std::nullopt;
  }
  return *count / unit.elements * unit.bytes;
}

}  // namespace hearth::io
