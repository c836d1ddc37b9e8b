#pragma once
// The int8 product on AMX tiles, for 16 rows of activations or more. A panel's
// bytes are already what a right-hand tile wants (four columns by 16 rows of
// W to a line), so tiles load straight from it; activations are brought into
// tiles' order a block of rows at a time. A unit of columns is one tile product
// deep: 32 rows by 32 outputs are four tiles, whose int32 sums are scaled and
// added in fp32 by the vector unit, a batch of units at a time, while the next
// batch's products run. They are added in the order in which the vector kernels
// add them, so that results have the same bits.
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

constexpr int kBatch = 2;            // units scaled together
constexpr long kSums = 4 * 16 * 16;  // of one unit: [block][panel][16][16]

// 16 * blocks rows of activations as tiles:
// [unit][block][16][unit bytes].
inline void tile_activations(
    const PackedLayout& l,
    const std::int8_t* codes,
    long blocks,
    std::int8_t* out
) {
  for (long r = 0; r < 16 * blocks; ++r) {
    const std::int8_t* from = codes + r * l.columns;
    std::int8_t* to = out + r * l.unit;
    for (long c = 0; c < l.columns; c += l.unit, to += 16 * blocks * l.unit) {
      for (int i = 0; i < l.unit; i += 16) {
        _mm_storeu_si128(
            reinterpret_cast<__m128i*>(to + i),
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + c + i))
        );
      }
    }
  }
}

// The sums of one unit: kA blocks of 16 rows by two panels.
template <int kA>
inline void unit_sums(
    const std::int8_t* x,
    long unit,
    const std::uint8_t* w0,
    const std::uint8_t* w1,
    std::int32_t* sums
) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_loadd(6, w0, 64);
  _tile_loadd(7, w1, 64);
  _tile_stream_loadd(4, x, unit);
  _tile_dpbsud(0, 4, 6);
  _tile_dpbsud(1, 4, 7);
  if constexpr (kA == 2) {
    _tile_zero(2);
    _tile_zero(3);
    _tile_stream_loadd(5, x + 16 * unit, unit);
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

// Sums of units [first, first + count) of a block that wait to be scaled.
struct UnitBatch {
  const std::int32_t* sums;
  long first;
  int count;
};

template <int kA>
class AmxBlock {
 public:
  AmxBlock(
      const PackedLayout& l,
      const PanelView (&w)[2],
      const QuantActivations& x,
      long row,
      const std::int8_t* tiled,
      float* f
  )
      : l_(l),
        w_(w),
        units_(l.columns / l.unit),
        scales_(x.scales + row * units_),
        starts_(x.starts + row * units_),
        minima_(x.sums + row * l.groups),
        tiled_(tiled),
        f_(f) {}

  // Adds units [first, end) to f, [row][panel][16].
  void multiply(long first, long end) {
    // Where no code is above the signed one, sums start at 0.
    if (l_.offset != 0)
      products<true>(first, end);
    else
      products<false>(first, end);
  }
  void finish(const QuantMatrix& y, long row, long panel) {
    for (int r = 0; r < 16 * kA; r += 4) {
      Floats line[4][2];
      for (int i = 0; i < 4; ++i) {
        for (int p = 0; p < 2; ++p) {
          line[i][p] = load_floats(f_ + (2 * (r + i) + p) * 16);
        }
      }
      if (l_.has_min) add_minima<4, 2>(l_, w_, minima_ + r * l_.groups, line);
      store_tile<4, 2>(l_, y, row + r, panel, line);
    }
  }

 private:
  const PackedLayout& l_;
  const PanelView (&w_)[2];
  const long units_;
  const float* scales_;
  const std::int32_t* starts_;
  const float* minima_;
  const std::int8_t* tiled_;
  float* f_;
  alignas(64) std::int32_t sums_[2][kBatch * kSums];

  template <bool kStarts>
  void products(long first, long end) {
    UnitBatch before{sums_[1], 0, 0};
    const long tile = 16 * kA * l_.unit;
    for (long u = first, which = 0; u < end; u += kBatch, which ^= 1) {
      const int count = static_cast<int>(end - u < kBatch ? end - u : kBatch);
      for (int i = 0; i < kBatch; ++i) {
        if (i < count) {
          const long at = (u + i) * l_.unit * kRows;
          unit_sums<kA>(
              tiled_ + (u + i) * tile, l_.unit, w_[0].codes + at,
              w_[1].codes + at, sums_[which] + i * kSums
          );
        }
        add_rows<kStarts>(before, i * (16 / kBatch) * kA, 16 / kBatch * kA);
      }
      before = {sums_[which], u, count};
    }
    add_rows<kStarts>(before, 0, 16 * kA);
  }

  // f[row][panel][16] += scale * activation scale * (sum + start), unit by unit
  template <bool kStarts>
  inline void add_rows(const UnitBatch& b, int first, int rows) {
    if (b.count == kBatch) return add_units<kStarts, kBatch>(b, 0, first, rows);
    for (int i = 0; i < b.count; ++i) add_units<kStarts, 1>(b, i, first, rows);
  }
  template <bool kStarts, int kUnits>
  inline void add_units(const UnitBatch& b, int from, int first, int rows) {
    const long u = b.first + from, per_group = l_.group / l_.unit;
    Floats scale[2][kUnits];
#pragma GCC unroll 4
    for (int i = 0; i < kUnits; ++i) {
      const long g = (u + i) / per_group * kRows;
      scale[0][i] = load_floats(w_[0].scale + g);
      scale[1][i] = load_floats(w_[1].scale + g);
    }
    for (int r = first; r < first + rows; ++r) {
      const float* a = scales_ + r * units_ + u;
      const std::int32_t* start = starts_ + r * units_ + u;
      const std::int32_t* at =
          b.sums + from * kSums + r / 16 * 512 + r % 16 * 16;
      float* out = f_ + 32 * r;
      Floats left = load_floats(out), right = load_floats(out + 16);
#pragma GCC unroll 4
      for (int i = 0; i < kUnits; ++i) {
        Ints x = load_bytes(at + i * kSums),
             y = load_bytes(at + i * kSums + 256);
        if constexpr (kStarts) {
          x = add_int(splat_int(start[i]), x);
          y = add_int(splat_int(start[i]), y);
        }
        const Floats by = splat(a[i]);
        left = fma(to_float(x), mul(scale[0][i], by), left);
        right = fma(to_float(y), mul(scale[1][i], by), right);
      }
      store_floats(out, left);
      store_floats(out + 16, right);
    }
  }
};

// Two panels against a block of rows that lies in tiles, 32 at a time, then 16.
// A stripe of the panels stays in the first cache while all rows pass it.
inline void amx_panels(
    const PackedLayout& l,
    const PanelView (&w)[2],
    const QuantActivations& x,
    long row,
    long end,
    const std::int8_t* tiled,
    const QuantMatrix& y,
    long panel
) {
  alignas(64) float f[256 * 2 * 16];
  std::memset(
      f, 0, static_cast<std::size_t>(end - row) * 2 * 16 * sizeof(float)
  );
  const auto each_block = [&](auto&& body) {
    long r = row;
    for (; r + 32 <= end; r += 32) {
      body(
          AmxBlock<2>(
              l, w, x, r, tiled + (r - row) * l.columns, f + (r - row) * 32
          ),
          r
      );
    }
    if (r + 16 <= end) {
      body(
          AmxBlock<1>(
              l, w, x, r, tiled + (r - row) * l.columns, f + (r - row) * 32
          ),
          r
      );
    }
  };
  const long units = l.columns / l.unit, stripe = 512 / l.unit;
  for (long u = 0; u < units; u += stripe) {
    const long stop = u + stripe < units ? u + stripe : units;
    each_block([&](auto&& block, long) { block.multiply(u, stop); });
  }
  each_block([&](auto&& block, long r) { block.finish(y, r, panel); });
}

// The last rows, fewer than 16, by the vector kernels.
inline void last_rows(
    const PackedLayout& l,
    const PanelView (&w)[2],
    const QuantActivations& x,
    long row,
    long rows,
    const QuantMatrix& y,
    long panel
) {
  if (row == rows) return;
  PanelPrefetch nothing(nullptr, 0, 1);
  if (l.format.bits == 8) {
    tile_rows<kTileRows, 2, true>(l, w, x, row, rows, y, panel, nothing);
  } else {
    tile_rows<kTileRows, 2, false>(l, w, x, row, rows, y, panel, nothing);
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
  if (rows < 16)
    return int8_product(l, packed, begin, end, x, rows, y, scratch);
  const long pairs = (end - begin) / 2;
  const long whole = rows / 16 * 16, block = quant_row_block(l.columns);
  auto* bytes = static_cast<std::uint8_t*>(scratch);
  const std::size_t opened = (2 * panel_scratch(l) + 63) / 64 * 64;
  auto* tiled = static_cast<std::int8_t*>(scratch) + opened;
  configure_tiles(l.unit);
  for (long row = 0; pairs > 0 && row < whole; row += block) {
    const long stop = row + block < whole ? row + block : whole;
    for (long r = row; r < stop; r += 32) {
      tile_activations(
          l, x.codes + r * l.columns, r + 32 <= stop ? 2 : 1,
          tiled + (r - row) * l.columns
      );
    }
    for (long i = 0; i < pairs; ++i) {
      const long panel = begin + 2 * i;
      PanelView w[2];
      for (int p = 0; p < 2; ++p) {
        w[p] = open_panel(
            l, packed + static_cast<std::size_t>(panel + p) * l.panel_bytes,
            bytes + static_cast<std::size_t>(p) * panel_scratch(l)
        );
      }
      amx_panels(l, w, x, row, stop, tiled, y, panel);
      if (stop == whole) last_rows(l, w, x, whole, rows, y, panel);
    }
  }
  _tile_release();
  if (begin + 2 * pairs < end) {
    int8_product(l, packed, begin + 2 * pairs, end, x, rows, y, scratch);
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
