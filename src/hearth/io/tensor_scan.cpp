#include "hearth/io/tensor_scan.h"

#include <cstring>

namespace hearth::io {
namespace {

// A number whose exponent bits are all ones is NaN or infinite.
template <class T>
std::uint64_t count(
    std::span<const std::byte> bytes,
    std::size_t first,
    std::size_t step,
    T exponent
) {
  std::uint64_t found = 0;
  for (std::size_t at = first; at + sizeof(T) <= bytes.size(); at += step) {
    T bits = 0;
    std::memcpy(&bits, bytes.data() + at, sizeof bits);
    found += (bits & exponent) == exponent ? 1 : 0;
  }
  return found;
}

constexpr std::uint16_t kHalf = 0x7c00;

}  // namespace

std::uint64_t count_non_finite(
    TensorType type,
    std::span<const std::byte> bytes
) {
  if (const BlockFormat* block = block_of(type)) {
    std::uint64_t found = 0;
    for (const int at : block->halves) {
      if (at < 0) continue;
      found += count<std::uint16_t>(
          bytes, static_cast<std::size_t>(at),
          static_cast<std::size_t>(block->bytes), kHalf
      );
    }
    return found;
  }
  switch (type) {
    case TensorType::f64:
      return count<std::uint64_t>(bytes, 0, 8, 0x7ff0000000000000);
    case TensorType::f32:
      return count<std::uint32_t>(bytes, 0, 4, 0x7f800000);
    case TensorType::f16:
      return count<std::uint16_t>(bytes, 0, 2, kHalf);
    case TensorType::bf16:
      return count<std::uint16_t>(bytes, 0, 2, 0x7f80);
    default:
      return 0;
  }
}

}  // namespace hearth::io
