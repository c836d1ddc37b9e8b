#pragma once
// Vectors of 64 bytes for int8 products, in plain loops.
#include "hearth/kernels/quant/half_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

struct Bytes {
  std::uint8_t v[64];
};
struct Ints {
  std::int32_t v[16];
};
struct Floats {
  float v[16];
};

constexpr int kFullBias = 0;
constexpr int kFewRows = 1;
constexpr int kTileRows = 1, kTilePanels = 1, kExactRows = 2;

inline Bytes load_bytes(const void* p) {
  Bytes a;
  std::memcpy(a.v, p, 64);
  return a;
}
inline void store_bytes(void* p, Bytes a) {
  std::memcpy(p, a.v, 64);
}
// Byte by byte: what the callers keep of a 16-bit shift is the same.
inline Bytes shr(Bytes a, int k) {
  for (auto& b : a.v) b = static_cast<std::uint8_t>(b >> k);
  return a;
}
inline Bytes shl(Bytes a, int k) {
  for (auto& b : a.v) b = static_cast<std::uint8_t>(b << k);
  return a;
}
inline Bytes mask(Bytes a, int bits) {
  for (auto& b : a.v) b = static_cast<std::uint8_t>(b & bits);
  return a;
}
inline Bytes either(Bytes a, Bytes b) {
  for (int i = 0; i < 64; ++i) a.v[i] |= b.v[i];
  return a;
}

inline Ints splat_int(std::int32_t x) {
  Ints a;
  for (auto& i : a.v) i = x;
  return a;
}
template <bool kFull>
inline Ints dot(Ints sum, Bytes u, const std::int8_t* x) {
  for (int l = 0; l < 16; ++l) {
    for (int i = 0; i < 4; ++i) sum.v[l] += u.v[4 * l + i] * x[i];
  }
  return sum;
}
inline Ints add_int(Ints a, Ints b) {
  for (int l = 0; l < 16; ++l) a.v[l] += b.v[l];
  return a;
}
inline Ints byte_of(Bytes a, int i) {
  Ints b;
  for (int l = 0; l < 16; ++l) b.v[l] = a.v[4 * l + i];
  return b;
}

inline Floats to_float(Ints a) {
  Floats f;
  for (int l = 0; l < 16; ++l) f.v[l] = static_cast<float>(a.v[l]);
  return f;
}
inline Floats splat(float x) {
  Floats f;
  for (auto& l : f.v) l = x;
  return f;
}
inline Floats load_floats(const float* p) {
  Floats f;
  std::memcpy(f.v, p, 64);
  return f;
}
inline void store_floats(float* p, Floats a) {
  std::memcpy(p, a.v, 64);
}
inline Floats mul(Floats a, Floats b) {
  for (int l = 0; l < 16; ++l) a.v[l] *= b.v[l];
  return a;
}
inline Floats add(Floats a, Floats b) {
  for (int l = 0; l < 16; ++l) a.v[l] += b.v[l];
  return a;
}
inline Floats sub(Floats a, Floats b) {
  for (int l = 0; l < 16; ++l) a.v[l] -= b.v[l];
  return a;
}
inline Floats fma(Floats a, Floats b, Floats c) {
  for (int l = 0; l < 16; ++l) c.v[l] += a.v[l] * b.v[l];
  return c;
}
inline Floats load_f16(const void* p) {
  Floats f;
  for (int l = 0; l < 16; ++l) f.v[l] = load_scale(p, l, ScaleType::kF16);
  return f;
}
inline Floats load_bf16(const void* p) {
  Floats f;
  for (int l = 0; l < 16; ++l) f.v[l] = load_scale(p, l, ScaleType::kBf16);
  return f;
}
inline Floats load_u8(const void* p) {
  Floats f;
  for (int l = 0; l < 16; ++l) f.v[l] = static_cast<const std::uint8_t*>(p)[l];
  return f;
}
inline Floats load_i8(const void* p) {
  Floats f;
  for (int l = 0; l < 16; ++l) f.v[l] = static_cast<const std::int8_t*>(p)[l];
  return f;
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
