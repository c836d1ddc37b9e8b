#pragma once
// Activations rounded to int8, a scale per unit.
#include "hearth/kernels/quant/panel_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Columns [c, c + n) of a row as floats, zeros from column `cols` on.
inline void read_row(
    const QuantMatrix& m,
    long row,
    long c,
    long n,
    long cols,
    float* out
) {
  const long there = cols - c < n ? cols - c : n;
  if (m.bf16) {
    const auto* in = static_cast<const std::uint16_t*>(m.data) + row * m.ld + c;
    for (long i = 0; i < there; ++i) out[i] = bf16_to_float(in[i]);
  } else {
    const auto* in = static_cast<const float*>(m.data) + row * m.ld + c;
    for (long i = 0; i < there; ++i) out[i] = in[i];
  }
  for (long i = there; i < n; ++i) out[i] = 0.0f;
}

// The largest magnitude of a unit, by its bits: magnitudes compare as integers,
// and infinities and NaN lie beyond the finite.
template <int kUnit>
inline std::int32_t largest_bits(const float* x) {
  std::int32_t most[16] = {};
  for (int i = 0; i < kUnit; i += 16) {
    for (int l = 0; l < 16; ++l) {
      const auto a =
          static_cast<std::int32_t>(float_bits(x[i + l]) & 0x7fffffffu);
      most[l] = a > most[l] ? a : most[l];
    }
  }
  std::int32_t top = 0;
  for (int l = 0; l < 16; ++l) top = most[l] > top ? most[l] : top;
  return top;
}

// One unit: int8 codes and their sum. Returns the scale, NaN where a value is
// not finite.
template <int kUnit>
inline float round_unit(const float* x, std::int8_t* codes, std::int32_t* sum) {
  const std::int32_t bits = largest_bits<kUnit>(x);
  const float top = bits_float(static_cast<std::uint32_t>(bits));
  const bool finite = bits < 0x7f800000;
  // A unit this small is zero: its inverse would overflow.
  if (!finite || top <= 1e-36f) {
    std::memset(codes, 0, kUnit);
    *sum = 0;
    return finite ? 0.0f : bits_float(0x7fc00000u);
  }
  const float inv = 127.0f / top;
  std::int32_t q[kUnit], total = 0;
  for (int i = 0; i < kUnit; ++i) {
    // Adding 1.5 * 2^23 leaves the rounded value in the low bits.
    q[i] = static_cast<std::int32_t>(float_bits(x[i] * inv + 12582912.0f)) -
           0x4b400000;
  }
  for (int i = 0; i < kUnit; ++i) total += q[i];
  for (int i = 0; i < kUnit; ++i) codes[i] = static_cast<std::int8_t>(q[i]);
  *sum = total;
  return top / 127.0f;
}

template <int kUnit>
inline void round_row(
    const PackedLayout& l,
    const QuantMatrix& x,
    long row,
    const QuantActivations& out
) {
  const long units = l.columns / kUnit, per_group = l.group / kUnit;
  const int bias = (l.format.bits == 8 ? kFullBias : 0) - l.offset;
  float values[kUnit], sum = 0.0f;
  for (long u = 0; u < units; ++u) {
    read_row(x, row, u * kUnit, kUnit, l.cols, values);
    std::int32_t total;
    const float scale = round_unit<kUnit>(
        values, out.codes + row * l.columns + u * kUnit, &total
    );
    out.scales[row * units + u] = scale;
    out.starts[row * units + u] = bias * total;
    if (!l.has_min) continue;
    sum += scale * static_cast<float>(total);
    if ((u + 1) % per_group == 0) {
      out.sums[row * l.groups + u / per_group] = sum;
      sum = 0.0f;
    }
  }
}

void round_activations(
    const PackedLayout& l,
    const QuantMatrix& x,
    long begin,
    long end,
    const QuantActivations& out
) noexcept {
  for (long row = begin; row < end; ++row) {
    if (l.unit == 64) {
      round_row<64>(l, x, row, out);
    } else if (l.unit == 32) {
      round_row<32>(l, x, row, out);
    } else {
      round_row<16>(l, x, row, out);
    }
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
