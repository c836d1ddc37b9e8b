#pragma once
// The int8 products of several rows of activations, against bytes.
#include "hearth/kernels/quant/few_rows_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Prefetches the panels that are opened next into the second-level cache, a
// share with each unit that is multiplied now, so that memory and the vector
// unit work side by side.
class PanelPrefetch {
 public:
  PanelPrefetch(const std::uint8_t* at, std::size_t bytes, long units)
      : at_(at),
        end_(at + bytes),
        step_((static_cast<long>(bytes) / 64 + units) / units * 64) {}
  inline void unit() {
    const std::uint8_t* stop = end_ - at_ > step_ ? at_ + step_ : end_;
    for (; at_ < stop; at_ += 64) __builtin_prefetch(at_, 0, 2);
  }

 private:
  const std::uint8_t *at_, *end_;
  long step_;
};

// kR rows of activations by kP panels over all columns, whose codes are bytes.
// Sums stay in registers: int32 within a unit, fp32 across.
template <int kR, int kP, bool kFull>
inline void tile(
    const PackedLayout& l,
    const PanelView* w,
    const QuantActivations& x,
    long row,
    PanelPrefetch& ahead,
    Floats (&f)[kR][kP]
) {
  const long units = l.columns / l.unit, per_group = l.group / l.unit;
  const std::int8_t* codes = x.codes + row * l.columns;
  const float* scales = x.scales + row * units;
  const std::int32_t* starts = x.starts + row * units;
  const std::uint8_t* panel[kP];
  for (int p = 0; p < kP; ++p) panel[p] = w[p].codes;
  for (long u = 0, g = 0, left = per_group; u < units; ++u) {
    ahead.unit();
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
    long panel,
    PanelPrefetch& ahead
) {
  for (; row + kR <= rows; row += kR) {
    Floats f[kR][kP];
    for (auto& line : f) {
      for (auto& lane : line) lane = splat(0.0f);
    }
    tile<kR, kP, kFull>(l, w, x, row, ahead, f);
    if (l.has_min) add_minima<kR, kP>(l, w, x.sums + row * l.groups, f);
    store_tile<kR, kP>(l, y, row, panel, f);
  }
  if constexpr (kR > 1) {
    if (row < rows) {
      tile_rows<kR - 1, kP, kFull>(l, w, x, row, rows, y, panel, ahead);
    }
  }
}

// A panel as tiles read it. Codes and scales are widened into scratch unless
// they can be used in place.
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

// Scratch of one opened panel; thread_scratch() of product.cpp computes the
// same.
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
    std::uint8_t* scratch,
    long left
) {
  PanelView w[kP];
  for (int p = 0; p < kP; ++p) {
    const auto index = static_cast<std::size_t>(panel + p);
    w[p] = open_panel(
        l, packed + index * l.panel_bytes,
        scratch + static_cast<std::size_t>(p) * panel_scratch(l)
    );
  }
  PanelPrefetch ahead(
      packed + static_cast<std::size_t>(panel + kP) * l.panel_bytes,
      static_cast<std::size_t>(left < kP ? left : kP) * l.panel_bytes,
      l.columns / l.unit
  );
  const auto run = [&]<int kR>() {
    if (l.format.bits == 8) {
      tile_rows<kR, kP, true>(l, w, x, 0, rows, y, panel, ahead);
    } else {
      tile_rows<kR, kP, false>(l, w, x, 0, rows, y, panel, ahead);
    }
  };
  // In even shares: a remainder of one or two rows would cost nearly as much
  // as a whole one.
  const long shares = (rows + kTileRows - 1) / kTileRows;
  const long each = shares > 1 ? (rows + shares - 1) / shares : kTileRows;
  if constexpr (kTileRows > 4) {
    if (each == kTileRows - 1) return run.template operator()<kTileRows - 1>();
    if (each == kTileRows - 2) return run.template operator()<kTileRows - 2>();
  }
  run.template operator()<kTileRows>();
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
  auto* bytes = static_cast<std::uint8_t*>(scratch);
  if (few_rows_product(l, packed, begin, end, x, rows, y, bytes)) return;
  long p = begin;
  for (; p + kTilePanels <= end; p += kTilePanels) {
    panels_product<kTilePanels>(
        l, packed, p, x, rows, y, bytes, end - p - kTilePanels
    );
  }
  for (; p < end; ++p) {
    panels_product<1>(l, packed, p, x, rows, y, bytes, end - p - 1);
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
