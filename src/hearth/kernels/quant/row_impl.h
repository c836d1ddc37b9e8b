#pragma once
// The int8 product of one row of activations, straight from the bit planes:
// what decoding runs, as fast as memory delivers the weights.
#include "hearth/kernels/quant/activations_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Operands [kFrom, kTo) of a chunk times one row of activations, in two sums
// so that neither waits for the other.
template <int kBits, int kFrom, int kTo>
inline void chunk_dot(
    Ints (&sum)[2],
    const std::uint8_t* chunk,
    const std::int8_t* x
) {
#pragma GCC unroll 8
  for (int j = kFrom; j < kTo; ++j) {
    sum[j % 2] =
        dot < kBits == 8 > (sum[j % 2], operand<kBits>(chunk, j), x + 4 * j);
  }
}

// How far ahead of its use a panel is asked for.
constexpr long kAhead = 4096;

template <int kBits>
inline void ask_ahead(const std::uint8_t* chunk) {
#pragma GCC unroll 8
  for (int i = 0; i < kBits; ++i) __builtin_prefetch(chunk + kAhead + 64 * i);
}

// Sums in the order of the tiles, so that a row's result does not depend on
// how many rows there are.
template <int kBits>
inline Floats row_product(
    const PackedLayout& l,
    const std::uint8_t* panel,
    const QuantActivations& x
) {
  const long per_group = l.group / l.unit;
  const std::int8_t* codes = x.codes;
  const std::uint8_t* chunk = panel;
  Floats f = splat(0.0f), share = splat(0.0f);
  // Scales lie behind the codes, where asking ahead of those comes too late.
  const std::uint8_t* next = panel + l.panel_bytes + l.code_bytes;
  const auto scale_bytes = static_cast<long>(l.panel_bytes - l.code_bytes);
  for (long g = 0, u = 0, asked = 0; g < l.groups; ++g) {
    for (; asked * l.groups < scale_bytes * (g + 1); asked += 64) {
      __builtin_prefetch(next + asked);
    }
    const GroupScale s = group_scale(l, panel, g);
    for (long k = 0; k < per_group; ++k, ++u) {
      Ints sum[2] = {splat_int(x.starts[u]), splat_int(0)};
      for (int c = 0; c < l.unit; c += 32, codes += 32, chunk += 64 * kBits) {
        ask_ahead<kBits>(chunk);
        chunk_dot<kBits, 0, 8>(sum, chunk, codes);
      }
      const Floats both = mul(s.scale, splat(x.scales[u]));
      f = fma(to_float(add_int(sum[0], sum[1])), both, f);
    }
    if (l.has_min) share = fma(s.min, splat(x.sums[g]), share);
  }
  return l.has_min ? add(f, share) : f;
}

// The same for Q6_K, whose groups are half a chunk.
inline Floats row_product_q6_k(
    const PackedLayout& l,
    const std::uint8_t* panel,
    const QuantActivations& x
) {
  Floats f = splat(0.0f);
  for (long c = 0; c < l.columns / kChunk; ++c) {
    const std::uint8_t* chunk = panel + c * 64 * 6;
    const std::int8_t* codes = x.codes + c * kChunk;
    Ints first[2] = {splat_int(x.starts[2 * c]), splat_int(0)};
    Ints second[2] = {splat_int(x.starts[2 * c + 1]), splat_int(0)};
    ask_ahead<6>(chunk);
    chunk_dot<6, 0, 4>(first, chunk, codes);
    chunk_dot<6, 4, 8>(second, chunk, codes);
    const Ints sum[2] = {
        add_int(first[0], first[1]), add_int(second[0], second[1])
    };
    for (int h = 0; h < 2; ++h) {
      const Floats scale = group_scale(l, panel, 2 * c + h).scale;
      f = fma(to_float(sum[h]), mul(scale, splat(x.scales[2 * c + h])), f);
    }
  }
  return f;
}

inline void row_panels(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const QuantActivations& x,
    const QuantMatrix& y
) {
  for (long p = begin; p < end; ++p) {
    const std::uint8_t* panel =
        packed + static_cast<std::size_t>(p) * l.panel_bytes;
    Floats f;
    if (l.unit == 16) {
      f = row_product_q6_k(l, panel, x);
    } else {
      for_bits(l.format.bits, [&]<int kBits>() {
        f = row_product<kBits>(l, panel, x);
      });
    }
    store_row(y, 0, p * kRows, l.rows - p * kRows, f);
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
