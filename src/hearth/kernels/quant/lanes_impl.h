#pragma once
// Sixteen output rows side by side: 64 bytes of codes, 16 int32 sums, 16
// floats, whatever number of registers that takes. Each lanes_*_impl.h offers
// the same functions; the kernels are written once over them.
//   dot<full>(sum, u, x)  sum[l] += u[4l..4l+3] * x[0..3], u unsigned codes, x
//                         signed. `full` says that u may pass 127; then the
//                         caller starts the sum kFullBias * (sum of x) higher.
//   shl, shr              shift 16-bit lanes; the caller masks what crossed.
#include <cstdint>
#include <cstring>

#include "hearth/kernels/isa.h"

#if defined(__AVX512VNNI__)
#include "hearth/kernels/quant/lanes_avx512_impl.h"
#elif defined(__AVX2__)
#include "hearth/kernels/quant/lanes_avx2_impl.h"
#elif HEARTH_ISA_IS(neon)
#include "hearth/kernels/quant/lanes_neon_impl.h"
#else
#include "hearth/kernels/quant/lanes_generic_impl.h"
#endif

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Operand j of a chunk in PackedLayout's bit planes, as bytes.
template <int kBits>
inline Bytes operand(const std::uint8_t* chunk, int j) {
  if constexpr (kBits == 8) {
    return load_bytes(chunk + 64 * j);
  } else if constexpr (kBits == 4) {
    const Bytes v = load_bytes(chunk + 64 * (j / 2));
    return mask(j % 2 == 0 ? v : shr(v, 4), 0x0f);
  } else if constexpr (kBits == 2) {
    return mask(shr(load_bytes(chunk + 64 * (j / 4)), 2 * (j % 4)), 0x03);
  } else if constexpr (kBits == 6) {
    const Bytes v = load_bytes(chunk + 256 + 64 * (j / 4));
    const int up = 4 - 2 * (j % 4);
    const Bytes high = up >= 0 ? shl(v, up) : shr(v, -up);
    return either(operand<4>(chunk, j), mask(high, 0x30));
  } else {
    constexpr int kLow = kBits - 1;  // 2 or 4 bits, then a plane of single ones
    const Bytes v = load_bytes(chunk + 64 * kLow);
    const Bytes high = kLow >= j ? shl(v, kLow - j) : shr(v, j - kLow);
    return either(operand<kLow>(chunk, j), mask(high, 1 << kLow));
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
