#pragma once
// 16-bit floats by bit arithmetic, the same on every instruction set. Internal
// linkage throughout, so that a per-ISA file may include it.
#include <cstdint>
#include <cstring>

#include "hearth/kernels/quant/format.h"

namespace hearth::kernels {
namespace {

inline std::uint32_t float_bits(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

inline float bits_float(std::uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

inline float bf16_to_float(std::uint16_t h) {
  return bits_float(static_cast<std::uint32_t>(h) << 16);
}

// Nearest, ties to even; NaN stays NaN.
inline std::uint16_t float_to_bf16(float x) {
  const std::uint32_t u = float_bits(x);
  const std::uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
  const std::uint32_t quiet = (u >> 16) | 0x40u;
  return static_cast<std::uint16_t>(x == x ? rounded : quiet);
}

inline float f16_to_float(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16, low = h & 0x7fffu;
  const std::uint32_t exponent = low >> 10;
  // Subnormals are counts of 2^-24, exact in fp32.
  const float subnormal = static_cast<float>(low) * 0x1p-24f;
  const std::uint32_t bias = exponent == 31 ? (224u << 23) : (112u << 23);
  const std::uint32_t normal = (low << 13) + bias;
  return bits_float((exponent == 0 ? float_bits(subnormal) : normal) | sign);
}

// Nearest, ties to even; beyond the largest it is infinity, NaN stays NaN.
inline std::uint16_t float_to_f16(float x) {
  const std::uint32_t u = float_bits(x), sign = (u >> 16) & 0x8000u;
  const std::uint32_t a = u & 0x7fffffffu;
  std::uint32_t h;
  if (a > 0x7f800000u) {
    h = 0x7e00u;
  } else if (a >= 0x477ff000u) {
    h = 0x7c00u;
  } else if (a < 0x38800000u) {
    // Adding 1/2 puts the last kept bit of a subnormal at the unit's place, so
    // the addition rounds it.
    h = float_bits(bits_float(a) + 0.5f) - 0x3f000000u;
  } else {
    h = (a + 0xfffu + ((a >> 13) & 1u) - (112u << 23)) >> 13;
  }
  return static_cast<std::uint16_t>(h | sign);
}

inline std::uint16_t load_u16(const void* p) {
  std::uint16_t h;
  std::memcpy(&h, p, 2);
  return h;
}

inline void store_u16(void* p, std::uint16_t h) {
  std::memcpy(p, &h, 2);
}

inline float load_scale(const void* p, long i, ScaleType type) {
  const auto* bytes = static_cast<const std::uint8_t*>(p);
  if (type == ScaleType::kF32) {
    float x;
    std::memcpy(&x, bytes + 4 * i, 4);
    return x;
  }
  const std::uint16_t h = load_u16(bytes + 2 * i);
  return type == ScaleType::kF16 ? f16_to_float(h) : bf16_to_float(h);
}

// Rounds to the type, stores, and returns what was stored.
inline float store_scale(void* p, long i, ScaleType type, float x) {
  auto* bytes = static_cast<std::uint8_t*>(p);
  if (type == ScaleType::kF32) {
    std::memcpy(bytes + 4 * i, &x, 4);
    return x;
  }
  const bool f16 = type == ScaleType::kF16;
  const std::uint16_t h = f16 ? float_to_f16(x) : float_to_bf16(x);
  store_u16(bytes + 2 * i, h);
  return f16 ? f16_to_float(h) : bf16_to_float(h);
}

}  // namespace
}  // namespace hearth::kernels
