#pragma once
// F32 of one lane in plain C++: what every other table is checked against.

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kLanes = 1;
struct F32 {
  float v;
};
struct I32 {
  std::uint32_t v;
};
struct Mask {
  bool m;
};

HEARTH_INLINE F32 splat(float x) {
  return {x};
}
HEARTH_INLINE I32 splat_int(int x) {
  return {static_cast<std::uint32_t>(x)};
}
HEARTH_INLINE I32 bits(F32 a) {
  return {__builtin_bit_cast(unsigned, a.v)};
}
HEARTH_INLINE F32 from_bits(I32 a) {
  return {__builtin_bit_cast(float, a.v)};
}

HEARTH_INLINE F32 load(const float* p) {
  return {*p};
}
HEARTH_INLINE F32 load(const Bf16* p) {
  return from_bits({static_cast<std::uint32_t>(p->bits) << 16});
}
// The exponent is rebiased by a product, which also normalises subnormals.
HEARTH_INLINE F32 load(const Fp16* p) {
  const std::uint32_t h = p->bits, sign = (h & 0x8000u) << 16;
  if ((h & 0x7c00u) == 0x7c00u) {
    const std::uint32_t quiet = (h & 0x3ffu) != 0 ? 0x400000u : 0;
    return from_bits({sign | 0x7f800000u | quiet | ((h & 0x3ffu) << 13)});
  }
  const float rebiased = from_bits({(h & 0x7fffu) << 13}).v * 0x1p112f;
  return from_bits({sign | bits({rebiased}).v});
}
HEARTH_INLINE void store(float* p, F32 x) {
  *p = x.v;
}
HEARTH_INLINE void store(Bf16* p, F32 x) {
  const std::uint32_t u = bits(x).v;
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t r = nan ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1u);
  p->bits = static_cast<std::uint16_t>(r >> 16);
}
HEARTH_INLINE void store(Fp16* p, F32 x) {
  const std::uint32_t u = bits(x).v, a = u & 0x7fffffffu;
  std::uint32_t r;
  if (a > 0x7f800000u) {
    r = 0x7e00u | ((a >> 13) & 0x1ffu);
  } else if (a >= 0x47800000u) {
    r = 0x7c00u;
  } else if (a >= 0x38800000u) {
    r = (a - 0x38000000u + 0xfffu + ((a >> 13) & 1u)) >> 13;
  } else {
    // Adding 0.5 puts the last place of a subnormal half at the last place of
    // the sum, so the addition itself rounds.
    r = bits({from_bits({a}).v + 0.5f}).v - 0x3f000000u;
  }
  p->bits = static_cast<std::uint16_t>(r | ((u >> 16) & 0x8000u));
}
template <class T>
HEARTH_INLINE F32 load(const T* p, int n) {
  return n > 0 ? load(p) : F32{0.0f};
}
template <class T>
HEARTH_INLINE void store(T* p, F32 x, int n) {
  if (n > 0) store(p, x);
}

HEARTH_INLINE F32 operator+(F32 a, F32 b) {
  return {a.v + b.v};
}
HEARTH_INLINE F32 operator-(F32 a, F32 b) {
  return {a.v - b.v};
}
HEARTH_INLINE F32 operator*(F32 a, F32 b) {
  return {a.v * b.v};
}
HEARTH_INLINE F32 operator/(F32 a, F32 b) {
  return {a.v / b.v};
}
HEARTH_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {a.v * b.v + c.v};
}
HEARTH_INLINE F32 fnma(F32 a, F32 b, F32 c) {
  return {c.v - a.v * b.v};
}
HEARTH_INLINE F32 min(F32 a, F32 b) {
  return {a.v < b.v ? a.v : b.v};
}
HEARTH_INLINE F32 max(F32 a, F32 b) {
  return {a.v > b.v ? a.v : b.v};
}
HEARTH_INLINE F32 sqrt(F32 a) {
  return {__builtin_sqrtf(a.v)};
}
HEARTH_INLINE F32 abs(F32 a) {
  return {__builtin_fabsf(a.v)};
}
HEARTH_INLINE F32 neg(F32 a) {
  return {-a.v};
}
HEARTH_INLINE F32 copysign(F32 a, F32 sign) {
  return {__builtin_copysignf(a.v, sign.v)};
}
// Adding and taking away 1.5 * 2^23 leaves no room for a fraction.
HEARTH_INLINE F32 round(F32 a) {
  const float big = 0x1.8p23f;
  if (!(__builtin_fabsf(a.v) < 0x1p22f)) return a;
  float shifted = a.v + big;
  asm volatile("" : "+m"(shifted));
  return {__builtin_copysignf(shifted - big, a.v)};
}

HEARTH_INLINE Mask operator<(F32 a, F32 b) {
  return {a.v < b.v};
}
HEARTH_INLINE Mask operator<=(F32 a, F32 b) {
  return {a.v <= b.v};
}
HEARTH_INLINE Mask operator==(F32 a, F32 b) {
  return {a.v == b.v};
}
HEARTH_INLINE Mask is_nan(F32 a) {
  return {a.v != a.v};
}
HEARTH_INLINE F32 select(Mask m, F32 a, F32 b) {
  return m.m ? a : b;
}
HEARTH_INLINE bool any(Mask m) {
  return m.m;
}
HEARTH_INLINE float reduce_add(F32 a) {
  return a.v;
}
HEARTH_INLINE float reduce_max(F32 a) {
  return a.v;
}

HEARTH_INLINE I32 to_int(F32 a) {
  return {static_cast<std::uint32_t>(static_cast<int>(round(a).v))};
}
HEARTH_INLINE F32 to_float(I32 a) {
  return {static_cast<float>(static_cast<std::int32_t>(a.v))};
}
HEARTH_INLINE I32 operator+(I32 a, I32 b) {
  return {a.v + b.v};
}
HEARTH_INLINE I32 operator-(I32 a, I32 b) {
  return {a.v - b.v};
}
HEARTH_INLINE I32 operator&(I32 a, I32 b) {
  return {a.v & b.v};
}
HEARTH_INLINE I32 operator|(I32 a, I32 b) {
  return {a.v | b.v};
}
HEARTH_INLINE I32 operator^(I32 a, I32 b) {
  return {a.v ^ b.v};
}
HEARTH_INLINE I32 operator<<(I32 a, int n) {
  return {a.v << n};
}
HEARTH_INLINE I32 operator>>(I32 a, int n) {
  return {a.v >> n};
}
#define HEARTH_SCALE_BY_HALVES 1
HEARTH_INLINE F32 first_lanes(F32 x, int n) {
  return {n > 0 ? x.v : 0.0f};
}
HEARTH_INLINE F32 swap_pairs(F32 a) {
  return a;
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
