#pragma once
// F32 over AVX2, FMA and F16C: 8 lanes. Tails of 16-bit types go through a
// small array.
#include <immintrin.h>

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kLanes = 8;
struct F32 {
  __m256 v;
};
struct I32 {
  __m256i v;
};
struct Mask {
  __m256 m;
};

HEARTH_INLINE F32 splat(float x) {
  return {_mm256_set1_ps(x)};
}
HEARTH_INLINE I32 splat_int(int x) {
  return {_mm256_set1_epi32(x)};
}

HEARTH_INLINE __m256i first(int n) {
  return _mm256_cmpgt_epi32(
      _mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)
  );
}
HEARTH_INLINE __m128i load_half(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
template <class Half>
HEARTH_INLINE __m128i load_half(const Half* p, int n) {
  alignas(16) Half lane[kLanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(lane));
}
template <class Half>
HEARTH_INLINE void store_half(Half* p, __m128i x, int n) {
  alignas(16) Half lane[kLanes];
  _mm_store_si128(reinterpret_cast<__m128i*>(lane), x);
  for (int i = 0; i < n; ++i) p[i] = lane[i];
}

HEARTH_INLINE F32 widen_bf16(__m128i h) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16))};
}
HEARTH_INLINE F32 load(const float* p) {
  return {_mm256_loadu_ps(p)};
}
HEARTH_INLINE F32 load(const Bf16* p) {
  return widen_bf16(load_half(p));
}
HEARTH_INLINE F32 load(const Fp16* p) {
  return {_mm256_cvtph_ps(load_half(p))};
}
HEARTH_INLINE F32 load(const float* p, int n) {
  return {_mm256_maskload_ps(p, first(n))};
}
HEARTH_INLINE F32 load(const Bf16* p, int n) {
  return widen_bf16(load_half(p, n));
}
HEARTH_INLINE F32 load(const Fp16* p, int n) {
  return {_mm256_cvtph_ps(load_half(p, n))};
}

HEARTH_INLINE __m128i narrow_bf16(F32 x) {
  const __m256i u = _mm256_castps_si256(x.v);
  const __m256i odd =
      _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  __m256i r =
      _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256 nan = _mm256_cmp_ps(x.v, x.v, _CMP_UNORD_Q);
  r = _mm256_blendv_epi8(r, quiet, _mm256_castps_si256(nan));
  r = _mm256_srli_epi32(r, 16);
  r = _mm256_permute4x64_epi64(_mm256_packus_epi32(r, r), 0x08);
  return _mm256_castsi256_si128(r);
}
HEARTH_INLINE __m128i narrow_fp16(F32 x) {
  return _mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
HEARTH_INLINE void store(float* p, F32 x) {
  _mm256_storeu_ps(p, x.v);
}
HEARTH_INLINE void store(Bf16* p, F32 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow_bf16(x));
}
HEARTH_INLINE void store(Fp16* p, F32 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow_fp16(x));
}
// To aligned memory, past the caches.
HEARTH_INLINE void store_past(float* p, F32 x) {
  _mm256_stream_ps(p, x.v);
}
HEARTH_INLINE void store_past(Bf16* p, F32 x) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), narrow_bf16(x));
}
HEARTH_INLINE void end_of_stores_past() {
  _mm_sfence();
}
HEARTH_INLINE void store(float* p, F32 x, int n) {
  _mm256_maskstore_ps(p, first(n), x.v);
}
HEARTH_INLINE void store(Bf16* p, F32 x, int n) {
  store_half(p, narrow_bf16(x), n);
}
HEARTH_INLINE void store(Fp16* p, F32 x, int n) {
  store_half(p, narrow_fp16(x), n);
}

HEARTH_INLINE F32 operator+(F32 a, F32 b) {
  return {_mm256_add_ps(a.v, b.v)};
}
HEARTH_INLINE F32 operator-(F32 a, F32 b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
HEARTH_INLINE F32 operator*(F32 a, F32 b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
HEARTH_INLINE F32 operator/(F32 a, F32 b) {
  return {_mm256_div_ps(a.v, b.v)};
}
HEARTH_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
HEARTH_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {_mm256_fnmadd_ps(a.v, b.v, c.v)};
}
HEARTH_INLINE F32 min(F32 a, F32 b) {
  return {_mm256_min_ps(a.v, b.v)};
}
HEARTH_INLINE F32 max(F32 a, F32 b) {
  return {_mm256_max_ps(a.v, b.v)};
}
HEARTH_INLINE F32 sqrt(F32 a) {
  return {_mm256_sqrt_ps(a.v)};
}
HEARTH_INLINE F32 abs(F32 a) {
  return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)};
}
HEARTH_INLINE F32 neg(F32 a) {
  return {_mm256_xor_ps(a.v, _mm256_set1_ps(-0.0f))};
}
HEARTH_INLINE F32 copysign(F32 a, F32 sign) {
  const __m256 s = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(s, a.v), _mm256_and_ps(s, sign.v))};
}
HEARTH_INLINE F32 round(F32 a) {
  return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}

HEARTH_INLINE Mask operator<(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)};
}
HEARTH_INLINE Mask operator<=(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)};
}
HEARTH_INLINE Mask operator==(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)};
}
HEARTH_INLINE Mask is_nan(F32 a) {
  return {_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)};
}
HEARTH_INLINE F32 select(Mask m, F32 a, F32 b) {
  return {_mm256_blendv_ps(b.v, a.v, m.m)};
}
HEARTH_INLINE bool any(Mask m) {
  return _mm256_movemask_ps(m.m) != 0;
}

HEARTH_INLINE float reduce_add(F32 a) {
  __m128 s =
      _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
HEARTH_INLINE float reduce_max(F32 a) {
  __m128 s =
      _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

HEARTH_INLINE I32 to_int(F32 a) {
  return {_mm256_cvtps_epi32(a.v)};
}
HEARTH_INLINE F32 to_float(I32 a) {
  return {_mm256_cvtepi32_ps(a.v)};
}
HEARTH_INLINE I32 bits(F32 a) {
  return {_mm256_castps_si256(a.v)};
}
HEARTH_INLINE F32 from_bits(I32 a) {
  return {_mm256_castsi256_ps(a.v)};
}
HEARTH_INLINE I32 operator+(I32 a, I32 b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
HEARTH_INLINE I32 operator-(I32 a, I32 b) {
  return {_mm256_sub_epi32(a.v, b.v)};
}
HEARTH_INLINE I32 operator&(I32 a, I32 b) {
  return {_mm256_and_si256(a.v, b.v)};
}
HEARTH_INLINE I32 operator|(I32 a, I32 b) {
  return {_mm256_or_si256(a.v, b.v)};
}
HEARTH_INLINE I32 operator^(I32 a, I32 b) {
  return {_mm256_xor_si256(a.v, b.v)};
}
HEARTH_INLINE I32 operator<<(I32 a, int n) {
  return {_mm256_slli_epi32(a.v, n)};
}
HEARTH_INLINE I32 operator>>(I32 a, int n) {
  return {_mm256_srli_epi32(a.v, n)};
}
#define HEARTH_SCALE_BY_HALVES 1
HEARTH_INLINE I32 mul_wide(I32 a, std::uint32_t b, I32& high) {
  const __m256i c = _mm256_set1_epi64x(b);
  const __m256i even = _mm256_mul_epu32(a.v, c);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a.v, 32), c);
  high = {_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa)};
  return {_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa)};
}
HEARTH_INLINE F32 first_lanes(F32 x, int n) {
  return {_mm256_and_ps(x.v, _mm256_castsi256_ps(first(n)))};
}
HEARTH_INLINE F32 doubled(const float* p) {
  const __m256 v = _mm256_castps128_ps256(_mm_loadu_ps(p));
  return {
      _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3))
  };
}
HEARTH_INLINE F32 swap_pairs(F32 a) {
  return {_mm256_permute_ps(a.v, 0xb1)};
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
