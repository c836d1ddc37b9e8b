#pragma once
// Without VNNI: products of an unsigned and a signed byte are summed in pairs
// to 16 bits. Codes of up to 7 bits cannot overflow there; full 8-bit codes
// are taken as signed about 128, magnitude times signed activation.
#include <immintrin.h>

namespace hearth::kernels::HEARTH_ISA {
namespace {

struct Bytes {
  __m256i v[2];
};
using Ints = Bytes;
struct Floats {
  __m256 v[2];
};

constexpr int kFullBias = 128;
constexpr int kFewRows = 1;
constexpr int kTileRows = 2, kTilePanels = 1, kExactRows = 6;

inline Bytes load_bytes(const void* p) {
  const auto* q = static_cast<const __m256i*>(p);
  return {{_mm256_loadu_si256(q), _mm256_loadu_si256(q + 1)}};
}
inline void store_bytes(void* p, Bytes a) {
  auto* q = static_cast<__m256i*>(p);
  _mm256_storeu_si256(q, a.v[0]);
  _mm256_storeu_si256(q + 1, a.v[1]);
}
inline Bytes shr(Bytes a, int k) {
  return {{_mm256_srli_epi16(a.v[0], k), _mm256_srli_epi16(a.v[1], k)}};
}
inline Bytes shl(Bytes a, int k) {
  return {{_mm256_slli_epi16(a.v[0], k), _mm256_slli_epi16(a.v[1], k)}};
}
inline Bytes mask(Bytes a, int bits) {
  const __m256i m = _mm256_set1_epi8(static_cast<char>(bits));
  return {{_mm256_and_si256(a.v[0], m), _mm256_and_si256(a.v[1], m)}};
}
inline Bytes either(Bytes a, Bytes b) {
  return {{_mm256_or_si256(a.v[0], b.v[0]), _mm256_or_si256(a.v[1], b.v[1])}};
}

inline Ints splat_int(std::int32_t x) {
  return {{_mm256_set1_epi32(x), _mm256_set1_epi32(x)}};
}
template <bool kFull>
inline __m256i dot_half(__m256i sum, __m256i u, __m256i x) {
  if constexpr (kFull) {
    u = _mm256_xor_si256(u, _mm256_set1_epi8(static_cast<char>(0x80)));
    x = _mm256_sign_epi8(x, u);
    u = _mm256_abs_epi8(u);
  }
  const __m256i pairs = _mm256_maddubs_epi16(u, x);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
template <bool kFull>
inline Ints dot(Ints sum, Bytes u, const std::int8_t* x) {
  std::int32_t four;
  std::memcpy(&four, x, 4);
  const __m256i xs = _mm256_set1_epi32(four);
  return {
      {dot_half<kFull>(sum.v[0], u.v[0], xs),
       dot_half<kFull>(sum.v[1], u.v[1], xs)}
  };
}
inline Ints add_int(Ints a, Ints b) {
  return {{_mm256_add_epi32(a.v[0], b.v[0]), _mm256_add_epi32(a.v[1], b.v[1])}};
}
inline Ints byte_of(Bytes a, int i) {
  const __m256i m = _mm256_set1_epi32(255);
  return {
      {_mm256_and_si256(_mm256_srli_epi32(a.v[0], 8 * i), m),
       _mm256_and_si256(_mm256_srli_epi32(a.v[1], 8 * i), m)}
  };
}

inline Floats to_float(Ints a) {
  return {{_mm256_cvtepi32_ps(a.v[0]), _mm256_cvtepi32_ps(a.v[1])}};
}
inline Floats splat(float x) {
  return {{_mm256_set1_ps(x), _mm256_set1_ps(x)}};
}
inline Floats load_floats(const float* p) {
  return {{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
}
inline void store_floats(float* p, Floats a) {
  _mm256_storeu_ps(p, a.v[0]);
  _mm256_storeu_ps(p + 8, a.v[1]);
}
inline Floats mul(Floats a, Floats b) {
  return {{_mm256_mul_ps(a.v[0], b.v[0]), _mm256_mul_ps(a.v[1], b.v[1])}};
}
inline Floats add(Floats a, Floats b) {
  return {{_mm256_add_ps(a.v[0], b.v[0]), _mm256_add_ps(a.v[1], b.v[1])}};
}
inline Floats sub(Floats a, Floats b) {
  return {{_mm256_sub_ps(a.v[0], b.v[0]), _mm256_sub_ps(a.v[1], b.v[1])}};
}
inline Floats fma(Floats a, Floats b, Floats c) {
  return {
      {_mm256_fmadd_ps(a.v[0], b.v[0], c.v[0]),
       _mm256_fmadd_ps(a.v[1], b.v[1], c.v[1])}
  };
}
inline Floats load_f16(const void* p) {
  const auto* q = static_cast<const __m128i*>(p);
  return {
      {_mm256_cvtph_ps(_mm_loadu_si128(q)),
       _mm256_cvtph_ps(_mm_loadu_si128(q + 1))}
  };
}
inline __m256 bf16_half(__m128i h) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
inline Floats load_bf16(const void* p) {
  const auto* q = static_cast<const __m128i*>(p);
  return {{bf16_half(_mm_loadu_si128(q)), bf16_half(_mm_loadu_si128(q + 1))}};
}
inline Floats load_u8(const void* p) {
  const __m128i b = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {
      {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(b)),
       _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(b, 8)))}
  };
}
inline Floats load_i8(const void* p) {
  const __m128i b = _mm_loadu_si128(static_cast<const __m128i*>(p));
  return {
      {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)),
       _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(b, 8)))}
  };
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
