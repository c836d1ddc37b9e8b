#pragma once
// Baseline NEON: byte products widen to 16 bits and are summed in pairs twice;
// where the dot-product extension is compiled in, it is one instruction. Full
// 8-bit codes are taken as signed about 128.
#include <arm_neon.h>

namespace hearth::kernels::HEARTH_ISA {
namespace {

struct Bytes {
  uint8x16_t v[4];
};
struct Ints {
  int32x4_t v[4];
};
struct Floats {
  float32x4_t v[4];
};

constexpr int kFullBias = 128;
constexpr int kFewRows = 1;
constexpr int kTileRows = 2, kTilePanels = 1, kExactRows = 6;

inline Bytes load_bytes(const void* p) {
  const auto* q = static_cast<const std::uint8_t*>(p);
  return {{vld1q_u8(q), vld1q_u8(q + 16), vld1q_u8(q + 32), vld1q_u8(q + 48)}};
}
inline void store_bytes(void* p, Bytes a) {
  auto* q = static_cast<std::uint8_t*>(p);
  for (int i = 0; i < 4; ++i) vst1q_u8(q + 16 * i, a.v[i]);
}
// Byte by byte: what the callers keep of a 16-bit shift is the same.
inline Bytes shr(Bytes a, int k) {
  for (auto& r : a.v) r = vshlq_u8(r, vdupq_n_s8(static_cast<int8_t>(-k)));
  return a;
}
inline Bytes shl(Bytes a, int k) {
  for (auto& r : a.v) r = vshlq_u8(r, vdupq_n_s8(static_cast<int8_t>(k)));
  return a;
}
inline Bytes mask(Bytes a, int bits) {
  for (auto& r : a.v) r = vandq_u8(r, vdupq_n_u8(static_cast<uint8_t>(bits)));
  return a;
}
inline Bytes either(Bytes a, Bytes b) {
  for (int i = 0; i < 4; ++i) a.v[i] = vorrq_u8(a.v[i], b.v[i]);
  return a;
}

inline Ints splat_int(std::int32_t x) {
  const int32x4_t v = vdupq_n_s32(x);
  return {{v, v, v, v}};
}
inline int32x4_t dot_quarter(int32x4_t sum, int8x16_t w, int8x16_t x) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(sum, w, x);
#else
  const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x));
  const int16x8_t high = vmull_high_s8(w, x);
  return vpadalq_s16(sum, vpaddq_s16(low, high));
#endif
}
template <bool kFull>
inline Ints dot(Ints sum, Bytes u, const std::int8_t* x) {
  std::int32_t four;
  std::memcpy(&four, x, 4);
  const int8x16_t xs = vreinterpretq_s8_s32(vdupq_n_s32(four));
  for (int i = 0; i < 4; ++i) {
    uint8x16_t w = u.v[i];
    if constexpr (kFull) w = veorq_u8(w, vdupq_n_u8(0x80));
    sum.v[i] = dot_quarter(sum.v[i], vreinterpretq_s8_u8(w), xs);
  }
  return sum;
}
inline Ints add_int(Ints a, Ints b) {
  for (int i = 0; i < 4; ++i) a.v[i] = vaddq_s32(a.v[i], b.v[i]);
  return a;
}
inline Ints byte_of(Bytes a, int i) {
  Ints b;
  for (int r = 0; r < 4; ++r) {
    const uint32x4_t lanes = vreinterpretq_u32_u8(a.v[r]);
    const uint32x4_t moved = vshlq_u32(lanes, vdupq_n_s32(-8 * i));
    b.v[r] = vreinterpretq_s32_u32(vandq_u32(moved, vdupq_n_u32(255)));
  }
  return b;
}

inline Floats to_float(Ints a) {
  Floats f;
  for (int i = 0; i < 4; ++i) f.v[i] = vcvtq_f32_s32(a.v[i]);
  return f;
}
inline Floats splat(float x) {
  const float32x4_t v = vdupq_n_f32(x);
  return {{v, v, v, v}};
}
inline Floats load_floats(const float* p) {
  return {
      {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}
  };
}
inline void store_floats(float* p, Floats a) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, a.v[i]);
}
inline Floats mul(Floats a, Floats b) {
  for (int i = 0; i < 4; ++i) a.v[i] = vmulq_f32(a.v[i], b.v[i]);
  return a;
}
inline Floats add(Floats a, Floats b) {
  for (int i = 0; i < 4; ++i) a.v[i] = vaddq_f32(a.v[i], b.v[i]);
  return a;
}
inline Floats sub(Floats a, Floats b) {
  for (int i = 0; i < 4; ++i) a.v[i] = vsubq_f32(a.v[i], b.v[i]);
  return a;
}
inline Floats fma(Floats a, Floats b, Floats c) {
  for (int i = 0; i < 4; ++i) c.v[i] = vfmaq_f32(c.v[i], a.v[i], b.v[i]);
  return c;
}
inline Floats load_f16(const void* p) {
  const auto* q = static_cast<const std::uint16_t*>(p);
  Floats f;
  for (int i = 0; i < 4; ++i) {
    f.v[i] = vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(q + 4 * i)));
  }
  return f;
}
inline Floats load_bf16(const void* p) {
  const auto* q = static_cast<const std::uint16_t*>(p);
  Floats f;
  for (int i = 0; i < 4; ++i) {
    f.v[i] = vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(q + 4 * i), 16));
  }
  return f;
}
inline Floats load_u8(const void* p) {
  const uint8x16_t b = vld1q_u8(static_cast<const std::uint8_t*>(p));
  const uint16x8_t low = vmovl_u8(vget_low_u8(b)), high = vmovl_high_u8(b);
  return {
      {vcvtq_f32_u32(vmovl_u16(vget_low_u16(low))),
       vcvtq_f32_u32(vmovl_high_u16(low)),
       vcvtq_f32_u32(vmovl_u16(vget_low_u16(high))),
       vcvtq_f32_u32(vmovl_high_u16(high))}
  };
}
inline Floats load_i8(const void* p) {
  const int8x16_t b = vld1q_s8(static_cast<const std::int8_t*>(p));
  const int16x8_t low = vmovl_s8(vget_low_s8(b)), high = vmovl_high_s8(b);
  return {
      {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
       vcvtq_f32_s32(vmovl_high_s16(low)),
       vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
       vcvtq_f32_s32(vmovl_high_s16(high))}
  };
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
