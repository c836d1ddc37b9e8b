#pragma once
// The int8 products of one row of activations or a few, straight from the bit
// planes: a panel is read once, its codes are widened in registers and every
// row's sums stay there. What decoding runs, as fast as memory delivers the
// weights.
#include "hearth/kernels/quant/activations_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// What a tile needs of one panel: bytes or planes of codes, fp32 scales.
struct PanelView {
  const std::uint8_t* codes;
  const float *scale, *min;
};

// How far ahead of its use a panel is asked for.
constexpr long kAhead = 8192;

template <int kBits>
inline void ask_ahead(const std::uint8_t* chunk) {
#pragma GCC unroll 8
  for (int i = 0; i < kBits; ++i) __builtin_prefetch(chunk + kAhead + 64 * i);
}

// Activations unit by unit, the rows of one side by side, so that few pointers
// run through them: codes in chunks of 32 columns. Of one row it is what it
// was.
struct UnitRows {
  const std::int8_t* codes;
  const float* scales;
  const std::int32_t* starts;
  const float* sums;  // row after row
};

// Rows that are not there are the last one again.
template <int kR>
inline UnitRows lay_side_by_side(
    const PackedLayout& l,
    const QuantActivations& x,
    long rows,
    std::uint8_t* scratch
) {
  if constexpr (kR == 1) return {x.codes, x.scales, x.starts, x.sums};
  const long units = l.columns / l.unit, groups = l.has_min ? l.groups : 0;
  auto* scales = reinterpret_cast<float*>(scratch);
  float* sums = scales + units * kR;
  auto* starts = reinterpret_cast<std::int32_t*>(sums + groups * kR);
  auto* codes = reinterpret_cast<std::int8_t*>(starts + units * kR);
  for (int r = 0; r < kR; ++r) {
    const long row = r < rows ? r : rows - 1;
    const std::int8_t* from = x.codes + row * l.columns;
    for (long c = 0; c < l.columns; c += kChunk) {
      std::memcpy(codes + c * kR + r * kChunk, from + c, kChunk);
    }
    for (long u = 0; u < units; ++u) {
      scales[u * kR + r] = x.scales[row * units + u];
      starts[u * kR + r] = x.starts[row * units + u];
    }
    for (long g = 0; g < groups; ++g) {
      sums[r * groups + g] = x.sums[row * groups + g];
    }
  }
  return {codes, scales, starts, sums};
}

// The fp32 sums of kR rows over one panel, whose scales are read already. In
// the order of the tiles, so that a row's result does not depend on how many
// rows there are.
template <int kR, int kBits>
inline void few_rows(
    const PackedLayout& l,
    const std::uint8_t* chunk,
    const float* scale,
    UnitRows x,
    Floats (&f)[kR][1]
) {
  const long units = l.columns / l.unit, per_group = l.group / l.unit;
  for (int r = 0; r < kR; ++r) f[r][0] = splat(0.0f);
  for (long u = 0, left = per_group; u < units; ++u) {
    Ints sum[kR];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) sum[r] = splat_int(x.starts[r]);
    for (int c = 0; c < l.unit; c += kChunk) {
      ask_ahead<kBits>(chunk);
#pragma GCC unroll 8
      for (int j = 0; j < 8; ++j) {
        const Bytes w = operand<kBits>(chunk, j);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
          sum[r] = dot < kBits == 8 > (sum[r], w, x.codes + r * kChunk + 4 * j);
        }
      }
      x.codes += kR * kChunk;
      chunk += 64 * kBits;
    }
    const Floats s = load_floats(scale);
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) {
      f[r][0] = fma(to_float(sum[r]), mul(s, splat(x.scales[r])), f[r][0]);
    }
    x.scales += kR, x.starts += kR;
    if (--left == 0) left = per_group, scale += kRows;
  }
}

// The same for Q6_K, whose groups are half a chunk.
template <int kR>
inline void few_rows_q6_k(
    const PackedLayout& l,
    const std::uint8_t* chunk,
    const float* scale,
    UnitRows x,
    Floats (&f)[kR][1]
) {
  for (int r = 0; r < kR; ++r) f[r][0] = splat(0.0f);
  for (long c = 0; c < l.columns; c += kChunk) {
    ask_ahead<6>(chunk);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      Ints sum[kR];
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) sum[r] = splat_int(x.starts[r]);
#pragma GCC unroll 4
      for (int j = 4 * half; j < 4 * half + 4; ++j) {
        const Bytes w = operand<6>(chunk, j);
#pragma GCC unroll 8
        for (int r = 0; r < kR; ++r) {
          sum[r] = dot<false>(sum[r], w, x.codes + r * kChunk + 4 * j);
        }
      }
      const Floats s = load_floats(scale);
#pragma GCC unroll 8
      for (int r = 0; r < kR; ++r) {
        f[r][0] = fma(to_float(sum[r]), mul(s, splat(x.scales[r])), f[r][0]);
      }
      x.scales += kR, x.starts += kR, scale += kRows;
    }
    x.codes += kR * kChunk;
    chunk += 64 * 6;
  }
}

// The minima's share: sum over groups of min * (sum of activations).
template <int kR, int kP>
inline void add_minima(
    const PackedLayout& l,
    const PanelView* w,
    const float* sums,
    Floats (&f)[kR][kP]
) {
  Floats share[kR][kP];
  for (auto& line : share) {
    for (auto& lane : line) lane = splat(0.0f);
  }
  for (long g = 0; g < l.groups; ++g) {
    for (int p = 0; p < kP; ++p) {
      const Floats min = load_floats(w[p].min + g * kRows);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        share[r][p] = fma(min, splat(sums[r * l.groups + g]), share[r][p]);
      }
    }
  }
  for (int r = 0; r < kR; ++r) {
    for (int p = 0; p < kP; ++p) f[r][p] = add(f[r][p], share[r][p]);
  }
}

template <int kR>
inline void few_rows_panels(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const QuantActivations& x,
    long count,
    const QuantMatrix& y,
    std::uint8_t* scratch
) {
  auto* scale = reinterpret_cast<float*>(scratch);
  float* min = scale + l.groups * kRows;
  const UnitRows rows = lay_side_by_side<kR>(
      l, x, count, reinterpret_cast<std::uint8_t*>(min + l.groups * kRows)
  );
  for_bits(l.format.bits, [&]<int kBits>() {
    for (long p = begin; p < end; ++p) {
      const std::uint8_t* panel =
          packed + static_cast<std::size_t>(p) * l.panel_bytes;
      read_scales(l, panel, scale, min);
      // They lie behind the codes, where asking ahead of those is too late.
      const std::uint8_t* next = panel + l.panel_bytes;
      for (std::size_t i = l.code_bytes; i < l.panel_bytes; i += 64) {
        __builtin_prefetch(next + i);
      }
      Floats f[kR][1];
      if (kBits == 6 && l.unit < kChunk) {
        few_rows_q6_k<kR>(l, panel, scale, rows, f);
      } else {
        few_rows<kR, kBits>(l, panel, scale, rows, f);
      }
      if (l.has_min) {
        const PanelView view{panel, scale, min};
        add_minima<kR, 1>(l, &view, rows.sums, f);
      }
      for (int r = 0; r < kR && r < count; ++r) {
        store_row(y, r, p * kRows, l.rows - p * kRows, f[r][0]);
      }
    }
  });
}

// Whether there were few enough: 1, 2, 4, 8 rows at a time, since every number
// is code of its own. The scratch is that of two opened panels.
template <int kR = kFewRows>
inline bool few_rows_product(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const QuantActivations& x,
    long rows,
    const QuantMatrix& y,
    std::uint8_t* scratch
) {
  if (rows > kR) return false;
  if constexpr (kR > 1) {
    if (rows <= kR / 2) {
      return few_rows_product<kR / 2>(
          l, packed, begin, end, x, rows, y, scratch
      );
    }
  }
  few_rows_panels<kR>(l, packed, begin, end, x, rows, y, scratch);
  return true;
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
