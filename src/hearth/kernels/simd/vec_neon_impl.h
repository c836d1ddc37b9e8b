#pragma once
// F32 over NEON (AArch64): 4 lanes. Tails go through a small array.
#include <arm_neon.h>

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kLanes = 4;
struct F32 {
  float32x4_t v;
};
struct I32 {
  uint32x4_t v;
};
struct Mask {
  uint32x4_t m;
};

HEARTH_INLINE F32 splat(float x) {
  return {vdupq_n_f32(x)};
}
HEARTH_INLINE I32 splat_int(int x) {
  return {vreinterpretq_u32_s32(vdupq_n_s32(x))};
}

HEARTH_INLINE uint16x4_t load_half(const void* p) {
  return vld1_u16(static_cast<const std::uint16_t*>(p));
}
HEARTH_INLINE F32 widen_bf16(uint16x4_t h) {
  return {vreinterpretq_f32_u32(vshll_n_u16(h, 16))};
}
HEARTH_INLINE F32 widen_fp16(uint16x4_t h) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(h))};
}
HEARTH_INLINE uint16x4_t narrow_fp16(F32 x) {
  return vreinterpret_u16_f16(vcvt_f16_f32(x.v));
}
HEARTH_INLINE uint16x4_t narrow_bf16(F32 x) {
  const uint32x4_t u = vreinterpretq_u32_f32(x.v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
  const uint32x4_t up = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(x.v, x.v), up, quiet), 16);
}
HEARTH_INLINE F32 load(const float* p) {
  return {vld1q_f32(p)};
}
HEARTH_INLINE F32 load(const Bf16* p) {
  return widen_bf16(load_half(p));
}
HEARTH_INLINE F32 load(const Fp16* p) {
  return widen_fp16(load_half(p));
}
HEARTH_INLINE void store(float* p, F32 x) {
  vst1q_f32(p, x.v);
}
HEARTH_INLINE void store(Bf16* p, F32 x) {
  vst1_u16(&p->bits, narrow_bf16(x));
}
HEARTH_INLINE void store(Fp16* p, F32 x) {
  vst1_u16(&p->bits, narrow_fp16(x));
}
template <class T>
HEARTH_INLINE F32 load(const T* p, int n) {
  T lane[kLanes] = {};
  for (int i = 0; i < n; ++i) lane[i] = p[i];
  return load(lane);
}
template <class T>
HEARTH_INLINE void store(T* p, F32 x, int n) {
  T lane[kLanes];
  store(lane, x);
  for (int i = 0; i < n; ++i) p[i] = lane[i];
}

HEARTH_INLINE F32 operator+(F32 a, F32 b) {
  return {vaddq_f32(a.v, b.v)};
}
HEARTH_INLINE F32 operator-(F32 a, F32 b) {
  return {vsubq_f32(a.v, b.v)};
}
HEARTH_INLINE F32 operator*(F32 a, F32 b) {
  return {vmulq_f32(a.v, b.v)};
}
HEARTH_INLINE F32 operator/(F32 a, F32 b) {
  return {vdivq_f32(a.v, b.v)};
}
HEARTH_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {vfmaq_f32(c.v, a.v, b.v)};
}
HEARTH_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {vfmsq_f32(c.v, a.v, b.v)};
}
HEARTH_INLINE F32 min(F32 a, F32 b) {
  return {vbslq_f32(vcltq_f32(a.v, b.v), a.v, b.v)};
}
HEARTH_INLINE F32 max(F32 a, F32 b) {
  return {vbslq_f32(vcgtq_f32(a.v, b.v), a.v, b.v)};
}
HEARTH_INLINE F32 sqrt(F32 a) {
  return {vsqrtq_f32(a.v)};
}
HEARTH_INLINE F32 abs(F32 a) {
  return {vabsq_f32(a.v)};
}
HEARTH_INLINE F32 neg(F32 a) {
  return {vnegq_f32(a.v)};
}
HEARTH_INLINE F32 copysign(F32 a, F32 sign) {
  return {vbslq_f32(vdupq_n_u32(0x80000000u), sign.v, a.v)};
}
HEARTH_INLINE F32 round(F32 a) {
  return {vrndnq_f32(a.v)};
}

HEARTH_INLINE Mask operator<(F32 a, F32 b) {
  return {vcltq_f32(a.v, b.v)};
}
HEARTH_INLINE Mask operator<=(F32 a, F32 b) {
  return {vcleq_f32(a.v, b.v)};
}
HEARTH_INLINE Mask operator==(F32 a, F32 b) {
  return {vceqq_f32(a.v, b.v)};
}
HEARTH_INLINE Mask is_nan(F32 a) {
  return {vmvnq_u32(vceqq_f32(a.v, a.v))};
}
HEARTH_INLINE F32 select(Mask m, F32 a, F32 b) {
  return {vbslq_f32(m.m, a.v, b.v)};
}
HEARTH_INLINE bool any(Mask m) {
  return vmaxvq_u32(m.m) != 0;
}
HEARTH_INLINE float reduce_add(F32 a) {
  return vaddvq_f32(a.v);
}
HEARTH_INLINE float reduce_max(F32 a) {
  return vmaxvq_f32(a.v);
}

HEARTH_INLINE I32 to_int(F32 a) {
  return {vreinterpretq_u32_s32(vcvtnq_s32_f32(a.v))};
}
HEARTH_INLINE F32 to_float(I32 a) {
  return {vcvtq_f32_s32(vreinterpretq_s32_u32(a.v))};
}
HEARTH_INLINE I32 bits(F32 a) {
  return {vreinterpretq_u32_f32(a.v)};
}
HEARTH_INLINE F32 from_bits(I32 a) {
  return {vreinterpretq_f32_u32(a.v)};
}
HEARTH_INLINE I32 operator+(I32 a, I32 b) {
  return {vaddq_u32(a.v, b.v)};
}
HEARTH_INLINE I32 operator-(I32 a, I32 b) {
  return {vsubq_u32(a.v, b.v)};
}
HEARTH_INLINE I32 operator&(I32 a, I32 b) {
  return {vandq_u32(a.v, b.v)};
}
HEARTH_INLINE I32 operator|(I32 a, I32 b) {
  return {vorrq_u32(a.v, b.v)};
}
HEARTH_INLINE I32 operator^(I32 a, I32 b) {
  return {veorq_u32(a.v, b.v)};
}
HEARTH_INLINE I32 operator<<(I32 a, int n) {
  return {vshlq_u32(a.v, vdupq_n_s32(n))};
}
HEARTH_INLINE I32 operator>>(I32 a, int n) {
  return {vshlq_u32(a.v, vdupq_n_s32(-n))};
}
#define HEARTH_SCALE_BY_HALVES 1
HEARTH_INLINE F32 first_lanes(F32 x, int n) {
  float lane[kLanes];
  store(lane, x);
  return load(lane, n);
}
HEARTH_INLINE F32 swap_pairs(F32 a) {
  return {vrev64q_f32(a.v)};
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
