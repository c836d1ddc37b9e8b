#pragma once
// The 16-bit storage types as kernels see them: bits, with no arithmetic. A
// distinct type each, so that an overload on the pointer picks the conversion.
#include <cstdint>

namespace hearth::kernels {

struct Bf16 {
  std::uint16_t bits;
};
struct Fp16 {
  std::uint16_t bits;
};

}  // namespace hearth::kernels
