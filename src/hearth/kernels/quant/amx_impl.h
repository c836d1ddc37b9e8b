#pragma once
// The int8 product on AMX tiles, for 16 rows of activations or more. A panel's
// bytes are already what a right-hand tile wants (four columns by 16 rows of
// W to a line), so tiles load straight from it. A unit of columns is one tile
// product deep: 32 rows by 32 outputs are four tiles, whose int32 sums are
// scaled and added in fp32 by the vector unit while the next unit's products
// run. In the vector tiles' order, so results are the same bits.
#include <immintrin.h>

#include "hearth/kernels/quant/matmul_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

struct alignas(64) UnitTiles {
  unsigned char palette, start_row, reserved[14];
  unsigned short row_bytes[16];
  unsigned char rows[16];
};

// Tiles 0-3 are sums, 4-5 activations (16 x unit bytes), 6-7 weights.
constexpr UnitTiles unit_tiles(int unit) {
  UnitTiles c{};
  c.palette = 1;
  for (int i = 0; i < 8; ++i) c.row_bytes[i] = 64, c.rows[i] = 16;
  for (int i = 4; i < 6; ++i) {
    c.row_bytes[i] = static_cast<unsigned short>(unit);
  }
  for (int i = 6; i < 8; ++i) c.rows[i] = static_cast<unsigned char>(unit / 4);
  return c;
}

// Static storage: the compiler's intrinsic declares only part of it as read.
constexpr UnitTiles kTiles16 = unit_tiles(16), kTiles32 = unit_tiles(32),
                    kTiles64 = unit_tiles(64);

inline void configure_tiles(int unit) {
  if (unit == 64) {
    _tile_loadconfig(&kTiles64);
  } else if (unit == 32) {
    _tile_loadconfig(&kTiles32);
  } else {
    _tile_loadconfig(&kTiles16);
  }
}

// The sums of one unit: kA blocks of 16 rows by two panels, as
// sums[block][panel][16][16].
template <int kA>
inline void unit_sums(
    const std::int8_t* x,
    long stride,
    const std::uint8_t* w0,
    const std::uint8_t* w1,
    std::int32_t* sums
) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_loadd(6, w0, 64);
  _tile_loadd(7, w1, 64);
  _tile_loadd(4, x, stride);
  _tile_dpbsud(0, 4, 6);
  _tile_dpbsud(1, 4, 7);
  if constexpr (kA == 2) {
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(5, x + 16 * stride, stride);
    _tile_dpbsud(2, 5, 6);
    _tile_dpbsud(3, 5, 7);
  }
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + 256, 64);
  if constexpr (kA == 2) {
    _tile_stored(2, sums + 512, 64);
    _tile_stored(3, sums + 768, 64);
  }
}

// f[16 * kA rows][2 panels][16] += scale * activation scale * (sum + start)
template <int kA>
inline void add_unit(
    const std::int32_t* sums,
    const Floats (&scale)[2],
    const float* scales,
    const std::int32_t* starts,
    long units,
    float* f
) {
  for (int r = 0; r < 16 * kA; ++r) {
    const Floats a = splat(scales[r * units]);
    const Ints start = splat_int(starts[r * units]);
    for (int p = 0; p < 2; ++p) {
      const std::int32_t* at = sums + (r / 16 * 2 + p) * 256 + r % 16 * 16;
      const Floats sum = to_float(add_int(start, load_bytes(at)));
      float* out = f + (2 * r + p) * 16;
      store_floats(out, fma(sum, mul(scale[p], a), load_floats(out)));
    }
  }
}

// 16 * kA rows from `row` on against two panels.
template <int kA>
inline void amx_block(
    const PackedLayout& l,
    const PanelView (&w)[2],
    const QuantActivations& x,
    long row,
    const QuantMatrix& y,
    long panel
) {
  alignas(64) float f[16 * kA * 2 * 16] = {};
  alignas(64) std::int32_t sums[2][4 * 256];
  const long units = l.columns / l.unit, per_group = l.group / l.unit;
  for (long u = 0; u < units; ++u) {
    std::int32_t* now = sums[u % 2];
    const long at = u * l.unit;
    unit_sums<kA>(
        x.codes + row * l.columns + at, l.columns, w[0].codes + at * kRows,
        w[1].codes + at * kRows, now
    );
    const long g = u / per_group * kRows;
    const Floats scale[2] = {
        load_floats(w[0].scale + g), load_floats(w[1].scale + g)
    };
    add_unit<kA>(
        now, scale, x.scales + row * units + u, x.starts + row * units + u,
        units, f
    );
  }
  for (int r = 0; r < 16 * kA; ++r) {
    Floats line[1][2] = {
        {load_floats(f + 32 * r), load_floats(f + 32 * r + 16)}
    };
    if (l.has_min) add_minima<1, 2>(l, w, x.sums + (row + r) * l.groups, line);
    store_tile<1, 2>(l, y, row + r, panel, line);
  }
}

// Two panels: blocks of 32 rows, then of 16, then the vector unit's tiles.
inline void amx_panels(
    const PackedLayout& l,
    const PanelView (&w)[2],
    const QuantActivations& x,
    long rows,
    const QuantMatrix& y,
    long panel
) {
  long row = 0;
  for (; row + 32 <= rows; row += 32) amx_block<2>(l, w, x, row, y, panel);
  for (; row + 16 <= rows; row += 16) amx_block<1>(l, w, x, row, y, panel);
  if (row == rows) return;
  if (l.format.bits == 8) {
    tile_rows<kTileRows, 2, true>(l, w, x, row, rows, y, panel);
  } else {
    tile_rows<kTileRows, 2, false>(l, w, x, row, rows, y, panel);
  }
}

void amx_product(
    const PackedLayout& l,
    const std::uint8_t* packed,
    long begin,
    long end,
    const QuantActivations& x,
    long rows,
    const QuantMatrix& y,
    void* scratch
) noexcept {
  const long pairs = rows < 16 ? 0 : (end - begin) / 2;
  auto* bytes = static_cast<std::uint8_t*>(scratch);
  configure_tiles(l.unit);
  for (long i = 0; i < pairs; ++i) {
    const long panel = begin + 2 * i;
    PanelView w[2];
    for (int p = 0; p < 2; ++p) {
      w[p] = open_panel(
          l, packed + static_cast<std::size_t>(panel + p) * l.panel_bytes,
          bytes + static_cast<std::size_t>(p) * panel_scratch(l)
      );
    }
    amx_panels(l, w, x, rows, y, panel);
  }
  _tile_release();
  if (begin + 2 * pairs < end) {
    int8_product(l, packed, begin + 2 * pairs, end, x, rows, y, scratch);
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
