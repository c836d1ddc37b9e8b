#pragma once
// The int8 products of one row of activations or a few, straight from the bit
// planes: a panel is read once, its codes are widened in registers and every
// row's sums stay there. What decoding runs, as fast as memory delivers the
// weights.
#include "hearth/kernels/quant/activations_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// What a tile needs of one panel: its codes, as bytes or bit planes, and its
// scales and minima in fp32.
struct PanelView {
  const std::uint8_t* codes;
  const float *scale, *min;
};

// Prefetches panels some way ahead of their use, every line once and in the
// order of memory: codes, then scales, then the next panel's codes. Prefetching
// scales apart, or twice, cost an AMD Zen 5 a third of its memory bandwidth.
class PanelStream {
 public:
  PanelStream(
      const PackedLayout& l,
      const std::uint8_t* at,
      const std::uint8_t* end
  )
      : at_(at),
        end_(end),
        tail_(static_cast<long>(l.panel_bytes - l.code_bytes)),
        line_share_(64 * (l.columns / kChunk)) {
    for (long i = 0; i < kAhead && at_ < end_; i += 64) line();
  }
  // As much as a chunk's share of its panel.
  template <int kBits>
  inline void chunk() {
    if (at_ >= end_) return;
#pragma GCC unroll 8
    for (int i = 0; i < kBits; ++i) __builtin_prefetch(at_ + 64 * i);
    at_ += 64 * kBits;
    for (owed_ += tail_; owed_ >= line_share_; owed_ -= line_share_) line();
  }

 private:
  static constexpr long kAhead = 8192;
  const std::uint8_t *at_, *end_;
  // Bytes of scales behind a panel's codes. A line of them is prefetched
  // whenever the chunks' shares of them add up to one.
  long tail_, line_share_, owed_ = 0;

  inline void line() {
    __builtin_prefetch(at_);
    at_ += 64;
  }
};

// Activations with the rows of each unit side by side (codes: of each chunk of
// 32 columns), so that one pointer walks through all rows. For a single row
// that is the order it has anyway.
struct UnitRows {
  const std::int8_t* codes;
  const float* scales;
  const std::int32_t* starts;
  const float* sums;  // row after row
};

// Rows beyond the last one repeat it.
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

// Whether a panel's scales are fp16, one for each chunk, and there are no
// minima: the usual case when decoding. Such scales are widened where they are
// used.
inline bool half_scales(const PackedLayout& l) {
  return l.format.scale == ScaleType::kF16 && !l.has_min && l.group == kChunk &&
         l.unit == kChunk;
}

// The fp32 sums of kR rows over one panel, added in the order in which tiles
// add them, so that a row's result does not depend on how many rows there are.
// Scales were widened to fp32 before; with kHalf they lie behind the codes.
template <int kR, int kBits, bool kHalf>
inline void few_rows(
    const PackedLayout& l,
    const std::uint8_t* chunk,
    const float* scale,
    UnitRows x,
    PanelStream& stream,
    Floats (&f)[kR][1]
) {
  const std::uint8_t* half = chunk + l.code_bytes;
  const long units = l.columns / l.unit, per_group = l.group / l.unit;
  for (int r = 0; r < kR; ++r) f[r][0] = splat(0.0f);
  for (long u = 0, left = per_group; u < units; ++u) {
    Ints sum[kR];
#pragma GCC unroll 8
    for (int r = 0; r < kR; ++r) sum[r] = splat_int(x.starts[r]);
    for (int c = 0; c < l.unit; c += kChunk) {
      stream.template chunk<kBits>();
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
    const Floats s = kHalf ? load_f16(half) : load_floats(scale);
    half += 2 * kRows;
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
    PanelStream& stream,
    Floats (&f)[kR][1]
) {
  for (int r = 0; r < kR; ++r) f[r][0] = splat(0.0f);
  for (long c = 0; c < l.columns; c += kChunk) {
    stream.chunk<6>();
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
  const auto panel_at = [&](long p) {
    return packed + static_cast<std::size_t>(p) * l.panel_bytes;
  };
  const bool half = half_scales(l);
  for_bits(l.format.bits, [&]<int kBits>() {
    PanelStream stream(l, panel_at(begin), panel_at(end));
    for (long p = begin; p < end; ++p) {
      const std::uint8_t* panel = panel_at(p);
      if (!half) read_scales(l, panel, scale, min);
      Floats f[kR][1];
      if (kBits == 6 && l.unit < kChunk) {
        few_rows_q6_k<kR>(l, panel, scale, rows, stream, f);
      } else if (half) {
        few_rows<kR, kBits, true>(l, panel, scale, rows, stream, f);
      } else {
        few_rows<kR, kBits, false>(l, panel, scale, rows, stream, f);
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

// Runs the product where there are few enough rows, and returns whether it did.
// It takes 1, 2, 4 or 8 rows at a time, not any number, since each number is an
// instantiation of its own. The scratch is that of two opened panels.
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
