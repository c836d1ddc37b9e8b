#pragma once
// Vectors of 64 bytes for int8 products, in AVX-512 with VNNI.
#include <immintrin.h>

namespace hearth::kernels::HEARTH_ISA {
namespace {

using Bytes = __m512i;
using Ints = __m512i;
using Floats = __m512;

// vpdpbusd takes any unsigned byte.
constexpr int kFullBias = 0;
// Rows of activations by panels that stay in registers, rows of the exact
// kernel, and rows that go straight from the bit planes.
constexpr int kFewRows = 8;
constexpr int kTileRows = 6, kTilePanels = 2, kExactRows = 12;

inline Bytes load_bytes(const void* p) {
  return _mm512_loadu_si512(p);
}
inline void store_bytes(void* p, Bytes v) {
  _mm512_storeu_si512(p, v);
}
inline Bytes shr(Bytes v, int k) {
  return _mm512_srli_epi16(v, static_cast<unsigned>(k));
}
inline Bytes shl(Bytes v, int k) {
  return _mm512_slli_epi16(v, static_cast<unsigned>(k));
}
inline Bytes mask(Bytes v, int bits) {
  return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(bits)));
}
inline Bytes either(Bytes a, Bytes b) {
  return _mm512_or_si512(a, b);
}

inline Ints splat_int(std::int32_t x) {
  return _mm512_set1_epi32(x);
}
template <bool kFull>
inline Ints dot(Ints sum, Bytes u, const std::int8_t* x) {
  std::int32_t four;
  std::memcpy(&four, x, 4);
  return _mm512_dpbusd_epi32(sum, u, _mm512_set1_epi32(four));
}
inline Ints add_int(Ints a, Ints b) {
  return _mm512_add_epi32(a, b);
}
// Byte i of each lane.
inline Ints byte_of(Bytes v, int i) {
  return _mm512_and_si512(
      _mm512_srli_epi32(v, static_cast<unsigned>(8 * i)), _mm512_set1_epi32(255)
  );
}

inline Floats to_float(Ints v) {
  return _mm512_cvtepi32_ps(v);
}
inline Floats splat(float x) {
  return _mm512_set1_ps(x);
}
inline Floats load_floats(const float* p) {
  return _mm512_loadu_ps(p);
}
inline void store_floats(float* p, Floats v) {
  _mm512_storeu_ps(p, v);
}
inline Floats mul(Floats a, Floats b) {
  return _mm512_mul_ps(a, b);
}
inline Floats add(Floats a, Floats b) {
  return _mm512_add_ps(a, b);
}
inline Floats sub(Floats a, Floats b) {
  return _mm512_sub_ps(a, b);
}
inline Floats fma(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Floats load_f16(const void* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
inline Floats load_bf16(const void* p) {
  const __m256i h = _mm256_loadu_si256(static_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}
// Nearest, ties to even; NaN stays NaN. As float_to_bf16, bit for bit.
inline void store_bf16(void* p, Floats v) {
  const __m512i u = _mm512_castps_si512(v);
  const __m512i odd =
      _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
  const __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
  const __m512i r = _mm512_mask_mov_epi32(
      _mm512_add_epi32(u, up), _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), quiet
  );
  _mm256_storeu_si256(
      static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16))
  );
}
inline Floats load_u8(const void* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))
  );
}
inline Floats load_i8(const void* p) {
  return _mm512_cvtepi32_ps(
      _mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)))
  );
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
