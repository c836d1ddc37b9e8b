#pragma once
// Quantising one group or block of 8- and 4-bit formats and of MLX's affine
// ones. Included by rows_isa.cpp alone, which is compiled without fused
// multiply-add so that every instruction set yields the same bits.
#include "hearth/kernels/quant/codes_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kLanes = 16;

struct Extremes {
  float min, max;
  bool finite;
};

inline float absolute(float x) {
  return bits_float(float_bits(x) & 0x7fffffffu);
}
inline float nan_value() {
  return bits_float(0x7fc00000u);
}

inline Extremes extremes(const float* w, long n) {
  float lo[kLanes], hi[kLanes], bad[kLanes];
  for (int l = 0; l < kLanes; ++l) lo[l] = hi[l] = w[0], bad[l] = 0.0f;
  for (long i = 0; i < n / kLanes; ++i) {
    for (int l = 0; l < kLanes; ++l) {
      const float x = w[i * kLanes + l];
      lo[l] = x < lo[l] ? x : lo[l];
      hi[l] = x > hi[l] ? x : hi[l];
      bad[l] += x - x;  // NaN once x is not finite
    }
  }
  const float* tail = w + n / kLanes * kLanes;
  for (int l = 0; l < n % kLanes; ++l) {
    lo[l] = tail[l] < lo[l] ? tail[l] : lo[l];
    hi[l] = tail[l] > hi[l] ? tail[l] : hi[l];
    bad[l] += tail[l] - tail[l];
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      lo[l] = lo[l + half] < lo[l] ? lo[l + half] : lo[l];
      hi[l] = hi[l + half] > hi[l] ? hi[l + half] : hi[l];
      bad[l] += bad[l + half];
    }
  }
  return {lo[0], hi[0], bad[0] == 0.0f};
}

// Nearest, ties to even, for |x| < 2^22.
inline float round_small(float x) {
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23
  return (x + kMagic) - kMagic;
}

inline float clamp(float x, float lo, float hi) {
  x = x < lo ? lo : x;
  return x > hi ? hi : x;
}

// As mx::quantize: the scale is adjusted so that the edge of larger magnitude
// and zero both have a code.
inline void affine_group(
    const float* w,
    int n,
    int bits,
    std::uint8_t* u,
    float* scale,
    float* bias
) {
  const Extremes e = extremes(w, n);
  if (!e.finite) {
    *scale = *bias = nan_value();
    std::memset(u, 0, static_cast<std::size_t>(n));
    return;
  }
  const float bins = static_cast<float>((1 << bits) - 1);
  const bool low_edge = absolute(e.min) > absolute(e.max);
  float s = (e.max - e.min) / bins;
  s = s > 1e-7f ? s : 1e-7f;
  s = low_edge ? s : -s;
  const float edge = low_edge ? e.min : e.max;
  const float steps = __builtin_rintf(edge / s);
  float b = 0.0f;
  if (steps != 0.0f) s = edge / steps, b = edge;
  for (int i = 0; i < n; ++i) {
    u[i] = static_cast<std::uint8_t>(
        static_cast<int>(round_small(clamp((w[i] - b) / s, 0.0f, bins)))
    );
  }
  *scale = s, *bias = b;
}

// Signed codes plus their offset, for the scale as it was stored.
inline void symmetric_codes(
    const float* w,
    int n,
    int bits,
    float scale,
    std::uint8_t* u
) {
  const int offset = 1 << (bits - 1);
  const float limit = static_cast<float>(offset - 1);
  // Zero and NaN scales: every code is zero.
  const bool usable = scale > 0.0f && scale <= 3.4e38f;
  const float divisor = usable ? scale : 1.0f;
  for (int i = 0; i < n; ++i) {
    const float x = usable ? w[i] / divisor : 0.0f;
    u[i] = static_cast<std::uint8_t>(
        static_cast<int>(round_small(clamp(x, -limit, limit))) + offset
    );
  }
}

inline float symmetric_scale(const float* w, long n, int bits) {
  const Extremes e = extremes(w, n);
  if (!e.finite) return nan_value();
  const float lo = absolute(e.min), hi = absolute(e.max);
  return (lo > hi ? lo : hi) / static_cast<float>((1 << (bits - 1)) - 1);
}

// 1 / d, or 0 where that is not finite: such a block is all zero in fp16.
inline float inverse(float d) {
  return absolute(d) < 1.2e-38f ? 0.0f : 1 / d;
}

inline void q8_0_block(const float* w, std::uint8_t* out) {
  const Extremes e = extremes(w, 32);
  const float lo = absolute(e.min), hi = absolute(e.max);
  const float d = (lo > hi ? lo : hi) / 127.0f;
  const float id = e.finite ? inverse(d) : 0.0f;
  store_u16(out, float_to_f16(e.finite ? d : nan_value()));
  for (int i = 0; i < 32; ++i) {
    const float x = e.finite ? w[i] * id : 0.0f;
    const int whole = static_cast<int>(absolute(x));
    // Ties away from zero.
    const int q =
        whole +
        static_cast<int>(2.0f * (absolute(x) - static_cast<float>(whole)));
    out[2 + i] = static_cast<std::uint8_t>(x < 0.0f ? -q : q);
  }
}

inline void nibble_codes(
    const float* w,
    float base,
    float id,
    float half,
    std::uint8_t* out
) {
  std::uint8_t u[32];
  for (int i = 0; i < 32; ++i) {
    const int q = static_cast<int>((w[i] - base) * id + half);
    u[i] = static_cast<std::uint8_t>(q > 15 ? 15 : q);
  }
  write_nibbles(u, 16, out);
}

inline void q4_0_block(const float* w, std::uint8_t* out) {
  const Extremes e = extremes(w, 32);
  if (!e.finite) {
    store_u16(out, float_to_f16(nan_value()));
    std::memset(out + 2, 0, 16);
    return;
  }
  // The first of largest magnitude, sign kept, becomes code 0.
  float edge = absolute(e.min) > absolute(e.max) ? e.min : e.max;
  if (e.min == -e.max) {
    edge = w[0];
    for (int i = 1; i < 32; ++i) {
      edge = absolute(w[i]) > absolute(edge) ? w[i] : edge;
    }
  }
  const float d = edge / -8.0f;
  store_u16(out, float_to_f16(d));
  nibble_codes(w, 0.0f, inverse(d), 8.5f, out + 2);
}

inline void q4_1_block(const float* w, std::uint8_t* out) {
  const Extremes e = extremes(w, 32);
  if (!e.finite) {
    store_u16(out, float_to_f16(nan_value()));
    store_u16(out + 2, float_to_f16(nan_value()));
    std::memset(out + 4, 0, 16);
    return;
  }
  const float d = (e.max - e.min) / 15.0f;
  store_u16(out, float_to_f16(d));
  store_u16(out + 2, float_to_f16(e.min));
  nibble_codes(w, e.min, inverse(d), 0.5f, out + 4);
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
