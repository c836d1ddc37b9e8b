#pragma once
// F32 over AVX-512 (F, BW, DQ, VL): 16 lanes, tails by mask.
#include <immintrin.h>

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kLanes = 16;
struct F32 {
  __m512 v;
};
struct I32 {
  __m512i v;
};
struct Mask {
  __mmask16 m;
};

HEARTH_INLINE __mmask16 first(int n) {
  return static_cast<__mmask16>(_bzhi_u32(0xffffu, static_cast<unsigned>(n)));
}

HEARTH_INLINE F32 splat(float x) {
  return {_mm512_set1_ps(x)};
}
HEARTH_INLINE I32 splat_int(int x) {
  return {_mm512_set1_epi32(x)};
}

HEARTH_INLINE F32 widen_bf16(__m256i h) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16))};
}
HEARTH_INLINE F32 load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
HEARTH_INLINE F32 load(const Bf16* p) {
  return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
HEARTH_INLINE F32 load(const Fp16* p) {
  return {
      _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))
  };
}
HEARTH_INLINE F32 load(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first(n), p)};
}
HEARTH_INLINE F32 load(const Bf16* p, int n) {
  return widen_bf16(_mm256_maskz_loadu_epi16(first(n), p));
}
HEARTH_INLINE F32 load(const Fp16* p, int n) {
  return {_mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p))};
}

HEARTH_INLINE __m256i narrow_bf16(F32 x) {
#if defined(__AVX512BF16__)
  return (__m256i)_mm512_cvtneps_pbh(x.v);
#else
  const __m512i u = _mm512_castps_si512(x.v);
  const __m512i odd =
      _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  __m512i r =
      _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  r = _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(r, 16));
#endif
}
HEARTH_INLINE __m256i narrow_fp16(F32 x) {
  return _mm512_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
HEARTH_INLINE void store(float* p, F32 x) {
  _mm512_storeu_ps(p, x.v);
}
HEARTH_INLINE void store(Bf16* p, F32 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(x));
}
HEARTH_INLINE void store(Fp16* p, F32 x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_fp16(x));
}
// To aligned memory, past the caches.
HEARTH_INLINE void store_past(float* p, F32 x) {
  _mm512_stream_ps(p, x.v);
}
HEARTH_INLINE void store_past(Bf16* p, F32 x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(x));
}
HEARTH_INLINE void end_of_stores_past() {
  _mm_sfence();
}
HEARTH_INLINE void store(float* p, F32 x, int n) {
  _mm512_mask_storeu_ps(p, first(n), x.v);
}
HEARTH_INLINE void store(Bf16* p, F32 x, int n) {
  _mm256_mask_storeu_epi16(p, first(n), narrow_bf16(x));
}
HEARTH_INLINE void store(Fp16* p, F32 x, int n) {
  _mm256_mask_storeu_epi16(p, first(n), narrow_fp16(x));
}

HEARTH_INLINE F32 operator+(F32 a, F32 b) {
  return {_mm512_add_ps(a.v, b.v)};
}
HEARTH_INLINE F32 operator-(F32 a, F32 b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
HEARTH_INLINE F32 operator*(F32 a, F32 b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
HEARTH_INLINE F32 operator/(F32 a, F32 b) {
  return {_mm512_div_ps(a.v, b.v)};
}
HEARTH_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
HEARTH_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
HEARTH_INLINE F32 min(F32 a, F32 b) {
  return {_mm512_min_ps(a.v, b.v)};
}
HEARTH_INLINE F32 max(F32 a, F32 b) {
  return {_mm512_max_ps(a.v, b.v)};
}
HEARTH_INLINE F32 sqrt(F32 a) {
  return {_mm512_sqrt_ps(a.v)};
}
HEARTH_INLINE F32 abs(F32 a) {
  return {_mm512_abs_ps(a.v)};
}
HEARTH_INLINE F32 neg(F32 a) {
  return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0f))};
}
HEARTH_INLINE F32 copysign(F32 a, F32 sign) {
  const __m512 s = _mm512_set1_ps(-0.0f);
  return {_mm512_or_ps(_mm512_andnot_ps(s, a.v), _mm512_and_ps(s, sign.v))};
}
HEARTH_INLINE F32 round(F32 a) {
  return {_mm512_roundscale_ps(a.v, 0)};
}

HEARTH_INLINE Mask operator<(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
HEARTH_INLINE Mask operator<=(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)};
}
HEARTH_INLINE Mask operator==(F32 a, F32 b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
HEARTH_INLINE Mask is_nan(F32 a) {
  return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)};
}
HEARTH_INLINE F32 select(Mask m, F32 a, F32 b) {
  return {_mm512_mask_blend_ps(m.m, b.v, a.v)};
}
HEARTH_INLINE bool any(Mask m) {
  return m.m != 0;
}

HEARTH_INLINE float reduce_add(F32 a) {
  return _mm512_reduce_add_ps(a.v);
}
HEARTH_INLINE float reduce_max(F32 a) {
  return _mm512_reduce_max_ps(a.v);
}

HEARTH_INLINE I32 to_int(F32 a) {
  return {_mm512_cvtps_epi32(a.v)};
}
HEARTH_INLINE F32 to_float(I32 a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
HEARTH_INLINE I32 bits(F32 a) {
  return {_mm512_castps_si512(a.v)};
}
HEARTH_INLINE F32 from_bits(I32 a) {
  return {_mm512_castsi512_ps(a.v)};
}
HEARTH_INLINE I32 operator+(I32 a, I32 b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
HEARTH_INLINE I32 operator-(I32 a, I32 b) {
  return {_mm512_sub_epi32(a.v, b.v)};
}
HEARTH_INLINE I32 operator&(I32 a, I32 b) {
  return {_mm512_and_si512(a.v, b.v)};
}
HEARTH_INLINE I32 operator|(I32 a, I32 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
HEARTH_INLINE I32 operator^(I32 a, I32 b) {
  return {_mm512_xor_si512(a.v, b.v)};
}
HEARTH_INLINE I32 operator<<(I32 a, int n) {
  return {_mm512_slli_epi32(a.v, static_cast<unsigned>(n))};
}
HEARTH_INLINE I32 operator>>(I32 a, int n) {
  return {_mm512_srli_epi32(a.v, static_cast<unsigned>(n))};
}

HEARTH_INLINE I32 mul_wide(I32 a, std::uint32_t b, I32& high) {
  const __m512i c = _mm512_set1_epi64(b);
  const __m512i even = _mm512_mul_epu32(a.v, c);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), c);
  high = {_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd)};
  return {_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32))};
}
HEARTH_INLINE F32 first_lanes(F32 x, int n) {
  return {_mm512_maskz_mov_ps(first(n), x.v)};
}
HEARTH_INLINE F32 reciprocal_quick(F32 a) {
  return {_mm512_rcp14_ps(a.v)};
}
HEARTH_INLINE F32 scale(F32 x, F32 n) {
  return {_mm512_scalef_ps(x.v, n.v)};
}
HEARTH_INLINE F32 doubled(const float* p) {
  const __m512 v = _mm512_castps256_ps512(_mm256_loadu_ps(p));
  const __m512i each_twice =
      _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
  return {_mm512_permutexvar_ps(each_twice, v)};
}
HEARTH_INLINE F32 swap_pairs(F32 a) {
  return {_mm512_permute_ps(a.v, 0xb1)};
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
