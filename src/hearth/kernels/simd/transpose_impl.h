#pragma once
// Sixteen by sixteen 32-bit words transposed: floats, or pairs of bf16 that
// stay together; and the making of such pairs.
#include "hearth/kernels/simd/vec_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// out[c][r] = in[r][c]; strides are from one row of 16 words to the next, in
// bytes.
#if defined(__AVX512F__)
HEARTH_INLINE void transpose_words(
    const void* in,
    long in_bytes,
    void* out,
    long out_bytes
) {
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(out);
  __m512i a[16], b[16];
  for (int i = 0; i < 16; ++i) a[i] = _mm512_loadu_si512(from + i * in_bytes);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
    a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
    a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
    a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    b[i] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0x88);
    b[i + 4] = _mm512_shuffle_i32x4(a[i], a[i + 4], 0xdd);
    b[i + 8] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0x88);
    b[i + 12] = _mm512_shuffle_i32x4(a[i + 8], a[i + 12], 0xdd);
  }
  for (int i = 0; i < 8; ++i) {
    a[i] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0x88);
    a[i + 8] = _mm512_shuffle_i32x4(b[i], b[i + 8], 0xdd);
  }
  for (int i = 0; i < 16; ++i) _mm512_storeu_si512(to + i * out_bytes, a[i]);
}
#else
inline void transpose_words(
    const void* in,
    long in_bytes,
    void* out,
    long out_bytes
) {
  const auto* from = static_cast<const char*>(in);
  auto* to = static_cast<char*>(out);
  for (int c = 0; c < 16; ++c) {
    for (int r = 0; r < 16; ++r) {
      __builtin_memcpy(
          to + c * out_bytes + r * 4, from + r * in_bytes + c * 4, 4
      );
    }
  }
}
#endif

#if defined(__AVX512BW__)
// Rows of 32 bf16: pairs (low, high) of the first 16 columns, and of the
// others.
HEARTH_INLINE void interleave_words(
    __m512i low,
    __m512i high,
    void* left,
    void* right
) {
  alignas(64) static constexpr unsigned short kFirst[32] = {
      0, 32, 1, 33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39,
      8, 40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47
  };
  const __m512i first = _mm512_load_si512(kFirst);
  const __m512i second = _mm512_add_epi16(first, _mm512_set1_epi16(16));
  _mm512_storeu_si512(left, _mm512_permutex2var_epi16(low, first, high));
  _mm512_storeu_si512(right, _mm512_permutex2var_epi16(low, second, high));
}
#endif

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
