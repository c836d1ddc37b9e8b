#pragma once
// The int8 products: activations rounded per unit, one row against the bit
// planes, many rows against bytes.
#include "hearth/kernels/quant/half_impl.h"
#include "hearth/kernels/quant/matmul.h"
#include "hearth/kernels/quant/panel_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

inline float matrix_at(const QuantMatrix& m, long i) {
  return m.bf16 ? bf16_to_float(static_cast<const std::uint16_t*>(m.data)[i])
                : static_cast<const float*>(m.data)[i];
}

// Sixteen lanes of row `row` from column `column` on, as many as there are.
inline void
store_row(const QuantMatrix& m, long row, long column, long count, Floats f) {
  float lanes[16];
  if (!m.bf16 && count >= 16) {
    store_floats(static_cast<float*>(m.data) + row * m.ld + column, f);
    return;
  }
  store_floats(lanes, f);
  for (long l = 0; l < (count < 16 ? count : 16); ++l) {
    const long at = row * m.ld + column + l;
    if (m.bf16) {
      static_cast<std::uint16_t*>(m.data)[at] = float_to_bf16(lanes[l]);
    } else {
      static_cast<float*>(m.data)[at] = lanes[l];
    }
  }
}

// One unit of up to 64 columns; `count` of them are there, the rest is padding.
// Returns the scale, NaN where a value is not finite, and the sum of codes.
inline float
round_unit(const float* x, int unit, std::int8_t* codes, std::int32_t* sum) {
  float most[16] = {}, bad[16] = {};
  for (int i = 0; i < unit; i += 16) {
    for (int l = 0; l < 16; ++l) {
      const float a = bits_float(float_bits(x[i + l]) & 0x7fffffffu);
      most[l] = a > most[l] ? a : most[l];
      bad[l] += x[i + l] - x[i + l];
    }
  }
  float top = 0.0f;
  bool finite = true;
  for (int l = 0; l < 16; ++l) {
    top = most[l] > top ? most[l] : top;
    finite = finite && bad[l] == 0.0f;
  }
  // A unit this small is zero: its inverse would overflow.
  const bool live = finite && top > 1e-36f;
  const float inv = live ? 127.0f / top : 0.0f;
  std::int32_t total = 0;
  for (int i = 0; i < unit; ++i) {
    const float scaled = live ? x[i] * inv : 0.0f;
    const int q = static_cast<int>((scaled + 12582912.0f) - 12582912.0f);
    codes[i] = static_cast<std::int8_t>(q);
    total += q;
  }
  *sum = total;
  if (!finite) return bits_float(0x7fc00000u);
  return live ? top / 127.0f : 0.0f;
}

void round_row(
    const PackedLayout& l,
    const QuantMatrix& x,
    long row,
    const QuantActivations& out
) {
  const long units = l.columns / l.unit, per_group = l.group / l.unit;
  const int bias = (l.format.bits == 8 ? kFullBias : 0) - l.offset;
  float values[64], sum = 0.0f;
  for (long u = 0; u < units; ++u) {
    for (int i = 0; i < l.unit; ++i) {
      const long c = u * l.unit + i;
      values[i] = c < l.cols ? matrix_at(x, row * x.ld + c) : 0.0f;
    }
    std::int32_t total;
    const float scale = round_unit(
        values, l.unit, out.codes + row * l.columns + u * l.unit, &total
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
  for (long row = begin; row < end; ++row) round_row(l, x, row, out);
}

// What a tile needs of one panel: bytes or planes of codes, fp32 scales.
struct PanelView {
  const std::uint8_t* codes;
  const float *scale, *min;
};

// kR rows of activations by kP panels over all columns, from bytes. Sums stay
// in registers: int32 within a unit, fp32 across.
template <int kR, int kP, bool kFull>
inline void tile(
    const PackedLayout& l,
    const PanelView* w,
    const QuantActivations& x,
    long row,
    Floats (&f)[kR][kP]
) {
  const long units = l.columns / l.unit, per_group = l.group / l.unit;
  const std::int8_t* codes = x.codes + row * l.columns;
  const float* scales = x.scales + row * units;
  const std::int32_t* starts = x.starts + row * units;
  const std::uint8_t* panel[kP];
  for (int p = 0; p < kP; ++p) panel[p] = w[p].codes;
  for (long u = 0, g = 0, left = per_group; u < units; ++u) {
    Ints sum[kR][kP];
#pragma GCC unroll 16
    for (int r = 0; r < kR; ++r) {
      for (int p = 0; p < kP; ++p) sum[r][p] = splat_int(starts[r * units + u]);
    }
    for (int j = 0; j < l.unit / 4; j += 4) {
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        Bytes v[kP];
        for (int p = 0; p < kP; ++p) v[p] = load_bytes(panel[p] + 64 * i);
#pragma GCC unroll 16
        for (int r = 0; r < kR; ++r) {
          for (int p = 0; p < kP; ++p) {
            sum[r][p] =
                dot<kFull>(sum[r][p], v[p], codes + r * l.columns + 4 * i);
          }
        }
      }
      for (int p = 0; p < kP; ++p) panel[p] += 256;
      codes += 16;
    }
    for (int p = 0; p < kP; ++p) {
      const Floats scale = load_floats(w[p].scale + g * kRows);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        const Floats both = mul(scale, splat(scales[r * units + u]));
        f[r][p] = fma(to_float(sum[r][p]), both, f[r][p]);
      }
    }
    if (--left == 0) left = per_group, ++g;
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
  for (long g = 0; g < l.groups; ++g) {
    for (int p = 0; p < kP; ++p) {
      const Floats min = load_floats(w[p].min + g * kRows);
#pragma GCC unroll 16
      for (int r = 0; r < kR; ++r) {
        f[r][p] = fma(min, splat(sums[r * l.groups + g]), f[r][p]);
      }
    }
  }
}

template <int kR, int kP>
inline void store_tile(
    const PackedLayout& l,
    const QuantMatrix& y,
    long row,
    long panel,
    const Floats (&f)[kR][kP]
) {
  for (int r = 0; r < kR; ++r) {
    for (int p = 0; p < kP; ++p) {
      const long column = (panel + p) * kRows;
      store_row(y, row + r, column, l.rows - column, f[r][p]);
    }
  }
}

// Rows [row, rows), kR at a time and then what is left.
template <int kR, int kP, bool kFull>
inline void tile_rows(
    const PackedLayout& l,
    const PanelView* w,
    const QuantActivations& x,
    long row,
    long rows,
    const QuantMatrix& y,
    long panel
) {
  for (; row + kR <= rows; row += kR) {
    Floats f[kR][kP];
    for (auto& line : f) {
      for (auto& lane : line) lane = splat(0.0f);
    }
    tile<kR, kP, kFull>(l, w, x, row, f);
    if (l.has_min) add_minima<kR, kP>(l, w, x.sums + row * l.groups, f);
    store_tile<kR, kP>(l, y, row, panel, f);
  }
  if constexpr (kR > 1) {
    if (row < rows) {
      tile_rows<kR - 1, kP, kFull>(l, w, x, row, rows, y, panel);
    }
  }
}

// A panel as tiles want it; codes and scales go to scratch where they must.
inline PanelView open_panel(
    const PackedLayout& l,
    const std::uint8_t* panel,
    std::uint8_t* scratch
) {
  auto* scale = reinterpret_cast<float*>(scratch);
  float* min = scale + l.groups * kRows;
  read_scales(l, panel, scale, min);
  if (l.format.bits == 8) return {panel, scale, min};
  auto* bytes = reinterpret_cast<std::uint8_t*>(min + l.groups * kRows);
  for_bits(l.format.bits, [&]<int kBits>() {
    widen_codes<kBits>(panel, l.columns / kChunk, bytes);
  });
  return {bytes, scale, min};
}

// Scratch of one opened panel; matmul.cpp reckons the same.
inline std::size_t panel_scratch(const PackedLayout& l) {
  return static_cast<std::size_t>(l.groups * kRows * 8 + l.columns * kRows);
}

template <int kP>
inline void panels_product(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long panel,
    const QuantActivations& x,
    long rows,
    const QuantMatrix& y,
    std::uint8_t* scratch
) {
  PanelView w[kP];
  for (int p = 0; p < kP; ++p) {
    const auto index = static_cast<std::size_t>(panel + p);
    w[p] = open_panel(
        l, packed + index * l.panel_bytes,
        scratch + static_cast<std::size_t>(p) * panel_scratch(l)
    );
  }
  if (l.format.bits == 8) {
    tile_rows<kTileRows, kP, true>(l, w, x, 0, rows, y, panel);
  } else {
    tile_rows<kTileRows, kP, false>(l, w, x, 0, rows, y, panel);
  }
}

// Operands [kFrom, kTo) of a chunk times one row of activations.
template <int kBits, int kFrom, int kTo>
inline Ints
chunk_dot(Ints sum, const std::uint8_t* chunk, const std::int8_t* x) {
#pragma GCC unroll 8
  for (int j = kFrom; j < kTo; ++j) {
    sum = dot < kBits == 8 > (sum, operand<kBits>(chunk, j), x + 4 * j);
  }
  return sum;
}

// One row of activations straight from the planes, in tile()'s order.
template <int kBits>
inline Floats row_product(
    const PackedLayout& l,
    const std::uint8_t* panel,
    const QuantActivations& x
) {
  const long per_group = l.group / l.unit;
  const std::int8_t* codes = x.codes;
  const std::uint8_t* chunk = panel;
  Floats f = splat(0.0f);
  for (long g = 0, u = 0; g < l.groups; ++g) {
    const Floats scale = group_scale(l, panel, g).scale;
    for (long k = 0; k < per_group; ++k, ++u) {
      Ints sum = splat_int(x.starts[u]);
      for (int c = 0; c < l.unit; c += 32, codes += 32, chunk += 64 * kBits) {
        sum = chunk_dot<kBits, 0, 8>(sum, chunk, codes);
      }
      f = fma(to_float(sum), mul(scale, splat(x.scales[u])), f);
    }
  }
  for (long g = 0; g < l.groups && l.has_min; ++g) {
    f = fma(group_scale(l, panel, g).min, splat(x.sums[g]), f);
  }
  return f;
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
    Ints sum[2] = {splat_int(x.starts[2 * c]), splat_int(x.starts[2 * c + 1])};
    sum[0] = chunk_dot<6, 0, 4>(sum[0], chunk, codes);
    sum[1] = chunk_dot<6, 4, 8>(sum[1], chunk, codes);
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

void int8_product(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const QuantActivations& x,
    long rows,
    const QuantMatrix& y,
    void* scratch
) noexcept {
  if (rows == 1) return row_panels(l, packed, begin, end, x, y);
  auto* bytes = static_cast<std::uint8_t*>(scratch);
  long p = begin;
  for (; p + kTilePanels <= end; p += kTilePanels) {
    panels_product<kTilePanels>(l, packed, p, x, rows, y, bytes);
  }
  for (; p < end; ++p) panels_product<1>(l, packed, p, x, rows, y, bytes);
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
