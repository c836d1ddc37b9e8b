#pragma once
// Quantising a block of 256 weights to Q4_K, Q5_K or Q6_K. For each sub-block a
// few candidate scales are tried, as if its range took one code more or less:
// codes are rounded to each, the least-squares scale (and minimum) for those
// codes is computed, and the candidate with the least squared error wins. Then
// the sub-blocks' scales are themselves rounded, and the codes rounded again to
// what was stored.
#include "hearth/kernels/quant/quantize_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kTries = 21;  // candidates, from -1 to +1 code in steps of 0.1
constexpr int kMiddleTry = kTries / 2;

struct Fit {
  float scale = 0.0f, min = 0.0f, error = 0.0f;
};

// Least squares for w = scale * code + min with min <= 0, for given codes.
inline Fit fit_affine(const float* w, const float* code, int n) {
  float c = 0, cc = 0, x = 0, xc = 0;
  for (int i = 0; i < n; ++i) {
    c += code[i], cc += code[i] * code[i];
    x += w[i], xc += w[i] * code[i];
  }
  const float count = static_cast<float>(n), det = count * cc - c * c;
  Fit f;
  if (det > 0.0f) {
    f.scale = (count * xc - x * c) / det;
    f.min = (cc * x - c * xc) / det;
  }
  if (f.min > 0.0f || !(det > 0.0f)) {
    f.min = 0.0f;
    f.scale = cc > 0.0f ? xc / cc : 0.0f;
  }
  for (int i = 0; i < n; ++i) {
    const float off = f.scale * code[i] + f.min - w[i];
    f.error += off * off;
  }
  return f;
}

inline Fit search_affine(const float* w, int n, float top) {
  const Extremes e = extremes(w, n);
  const float min = e.min < 0.0f ? e.min : 0.0f, range = e.max - min;
  Fit best;
  best.min = min;
  if (!(range > 0.0f)) return best;
  float code[32];
  for (int t = 0; t < kTries; ++t) {
    const float stretch = 0.1f * static_cast<float>(t - kMiddleTry);
    const float inv = (top + stretch) / range;
    for (int i = 0; i < n; ++i) {
      code[i] = round_small(clamp((w[i] - min) * inv, 0.0f, top));
    }
    const Fit f = fit_affine(w, code, n);
    if (f.scale > 0.0f && (best.scale == 0.0f || f.error < best.error)) {
      best = f;
    }
  }
  return best;
}

// Q4_K (bits 4) and Q5_K (bits 5): eight sub-blocks of 32.
inline void k_block(const float* w, int bits, std::uint8_t* out) {
  const float top = static_cast<float>((1 << bits) - 1);
  const bool finite = extremes(w, 256).finite;
  Fit fit[8];
  float most_scale = 0.0f, most_min = 0.0f;
  for (int j = 0; j < 8 && finite; ++j) {
    fit[j] = search_affine(w + 32 * j, 32, top);
    most_scale = fit[j].scale > most_scale ? fit[j].scale : most_scale;
    most_min = -fit[j].min > most_min ? -fit[j].min : most_min;
  }
  store_u16(out, float_to_f16(finite ? most_scale / 63.0f : nan_value()));
  store_u16(out + 2, float_to_f16(finite ? most_min / 63.0f : nan_value()));
  const float d = f16_to_float(load_u16(out));
  const float dmin = f16_to_float(load_u16(out + 2));
  std::uint8_t scale[8] = {}, min[8] = {}, u[256] = {};
  for (int j = 0; j < 8 && finite; ++j) {
    scale[j] = d > 0.0f ? static_cast<std::uint8_t>(static_cast<int>(
                              round_small(clamp(fit[j].scale / d, 0.0f, 63.0f))
                          ))
                        : 0;
    min[j] = dmin > 0.0f
                 ? static_cast<std::uint8_t>(static_cast<int>(
                       round_small(clamp(-fit[j].min / dmin, 0.0f, 63.0f))
                   ))
                 : 0;
    const float step = d * static_cast<float>(scale[j]);
    const float low = dmin * static_cast<float>(min[j]);
    for (int i = 32 * j; i < 32 * j + 32 && step > 0.0f; ++i) {
      u[i] = static_cast<std::uint8_t>(
          static_cast<int>(round_small(clamp((w[i] + low) / step, 0.0f, top)))
      );
    }
  }
  write_k_scales(scale, min, out + 4);
  write_block(bits == 5 ? QuantKind::kQ5_K : QuantKind::kQ4_K, u, out);
}

// A signed scale for codes in [-32, 31]: the largest weight falls on -32.
inline float search_signed(const float* w, int n) {
  float edge = 0.0f;
  for (int i = 0; i < n; ++i) {
    edge = absolute(w[i]) > absolute(edge) ? w[i] : edge;
  }
  if (absolute(edge) < 1.2e-38f) return 0.0f;
  float best_gain = -1.0f, best = 0.0f;
  for (int t = 0; t < kTries; ++t) {
    const float stretch = 0.1f * static_cast<float>(t - kMiddleTry);
    const float inv = -(32.0f + stretch) / edge;
    float xc = 0, cc = 0;
    for (int i = 0; i < n; ++i) {
      const float code = round_small(clamp(w[i] * inv, -32.0f, 31.0f));
      xc += w[i] * code, cc += code * code;
    }
    // The squared error falls by xc^2 / cc.
    const float gain = cc > 0.0f ? xc * xc / cc : 0.0f;
    if (cc > 0.0f && gain > best_gain) best_gain = gain, best = xc / cc;
  }
  return best;
}

inline void q6_k_block(const float* w, std::uint8_t* out) {
  const bool finite = extremes(w, 256).finite;
  float scale[16] = {}, most = 0.0f;
  for (int j = 0; j < 16 && finite; ++j) {
    scale[j] = search_signed(w + 16 * j, 16);
    most = absolute(scale[j]) > absolute(most) ? scale[j] : most;
  }
  store_u16(out + 208, float_to_f16(finite ? most / -128.0f : nan_value()));
  const float d = f16_to_float(load_u16(out + 208));
  std::uint8_t u[256];
  for (int j = 0; j < 16; ++j) {
    int q = 0;
    if (finite && d != 0.0f) {
      q = static_cast<int>(round_small(clamp(scale[j] / d, -128.0f, 127.0f)));
    }
    out[192 + j] = static_cast<std::uint8_t>(q);
    const float step = d * static_cast<float>(q);
    for (int i = 16 * j; i < 16 * j + 16; ++i) {
      const float x = finite && step != 0.0f ? w[i] / step : 0.0f;
      u[i] = static_cast<std::uint8_t>(
          static_cast<int>(round_small(clamp(x, -32.0f, 31.0f))) + 32
      );
    }
  }
  write_block(QuantKind::kQ6_K, u, out);
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
