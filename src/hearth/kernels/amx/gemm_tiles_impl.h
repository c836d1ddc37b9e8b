#pragma once
// Products on AMX tiles, bf16 and int8 alike: 16 rows of 64 bytes of A against
// 16 words of depth by 16 columns of B. Four tiles hold a 32x32 piece of C. The
// panel of B (kDepth deep) stays in the first cache while A streams from the
// second, and the next panel is fetched meanwhile.
#include "hearth/kernels/amx/tiles_impl.h"
#include "hearth/kernels/gemm_pack_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr long kTile = 16;  // rows, words of depth, columns
constexpr long kTileBytes = 16 * 64;
constexpr long kPanelBytes = kPanel * 4;  // one word of depth of a panel

// A tile of A at (row tile t, depth tile w) starts at t * tile_rows + w *
// tile_depth bytes; its rows are row_bytes apart.
struct TiledA {
  const char* data;
  long row_bytes, tile_rows, tile_depth;
};

struct Bf16Tiles {
  static constexpr long kElement = 2;  // bytes
  static constexpr long kExtraRows = 0;
  using Sum = float;
  HEARTH_INLINE static void top() {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
  }
  HEARTH_INLINE static void bottom() {
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
};
struct Int8Tiles {
  static constexpr long kElement = 1;
  static constexpr long kExtraRows = 1;  // of a panel: the column sums
  using Sum = LooseInt;
  HEARTH_INLINE static void top() {
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
  }
  HEARTH_INLINE static void bottom() {
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
  }
};

inline __mmask64 first_bytes(long n) {
  return _bzhi_u64(~0ull, static_cast<unsigned>(n < 0 ? 0 : n > 64 ? 64 : n));
}

// Rows as they are, cut into tiles and filled up with zeros.
inline TiledA copy_tiles(
    const char* a,
    long stride,
    long height,
    long bytes,
    void* room
) {
  const long across = (bytes + 63) / 64;
  auto* out = static_cast<char*>(room);
  for (long t = 0; t < round_up(height, 2 * kTile) / kTile; ++t) {
    for (long r = 0; r < kTile; ++r) {
      const long row = t * kTile + r;
      char* to = out + t * across * kTileBytes + r * 64;
      for (long w = 0; w < across; ++w, to += kTileBytes) {
        const __mmask64 mask =
            row < height ? first_bytes(bytes - w * 64) : first_bytes(0);
        _mm512_store_si512(
            to, _mm512_maskz_loadu_epi8(mask, a + row * stride + w * 64)
        );
      }
    }
  }
  return {out, 64, across * kTileBytes, kTileBytes};
}

// Columns of bf16 as rows: pairs over depth first, then words transposed.
inline TiledA transpose_tiles(
    const Bf16* a,
    long stride,
    long height,
    long depth,
    void* room
) {
  const long across = (depth + 31) / 32;
  auto* out = static_cast<char*>(room);
  alignas(64) Word pairs[kTile * kTile];
  for (long t = 0; t < round_up(height, 2 * kTile) / kTile; ++t) {
    const long columns = smaller(kTile, height - t * kTile);
    for (long w = 0; w < across; ++w) {
      for (long r = 0; r < kTile; ++r) {
        Word* row = pairs + r * kTile;
        const long k = w * 32 + 2 * r;
        if (columns < kTile || k >= depth) zero_words(row, kTile);
        if (columns <= 0 || k >= depth) continue;
        const Bf16* low = a + k * stride + t * kTile;
        interleave(low, k + 1 < depth ? low + stride : nullptr, columns, row);
      }
      transpose_words(
          reinterpret_cast<const char*>(pairs), 64,
          reinterpret_cast<Word*>(out + (t * across + w) * kTileBytes), kTile
      );
    }
  }
  return {out, 64, across * kTileBytes, kTileBytes};
}

HEARTH_INLINE void prefetch_lines(const char* p, long lines) {
  for (long i = 0; i < lines; ++i) {
    _mm_prefetch(p + i * 64, _MM_HINT_T1);
  }
}

// One 32x32 (or, kBoth unset, 16x32) piece over the block's depth.
template <class Kind, bool kBoth>
HEARTH_INLINE void multiply_tiles(
    const char* a,
    const TiledA& shape,
    const char* b,
    long across,
    const char* next,
    long lines
) {
  const char* lower = a + shape.tile_rows;
  for (long w = 0; w < across; ++w) {
    _tile_loadd(6, b, kPanelBytes);
    _tile_loadd(4, a, shape.row_bytes);
    _tile_loadd(7, b + 64, kPanelBytes);
    Kind::top();
    if constexpr (kBoth) {
      _tile_loadd(5, lower, shape.row_bytes);
      Kind::bottom();
      lower += shape.tile_depth;
    }
    prefetch_lines(next, lines);
    next += lines * 64;
    a += shape.tile_depth;
    b += kTile * kPanelBytes;
  }
}

template <class Kind>
struct TileCore {
  using Sum = typename Kind::Sum;
  static constexpr long kRows = 256;
  static constexpr long kDepth = 1024 / Kind::kElement;  // 32 KiB of a panel
  static constexpr long kRoom = kRows * kDepth * Kind::kElement;

  TiledA block_of_a(
      const GemmArgs& g,
      long i,
      long height,
      long k,
      long depth,
      void* room
  ) const {
    const auto* a = static_cast<const char*>(g.a);
    if (g.a_transposed) {
      const auto* from = reinterpret_cast<const Bf16*>(a) + k * g.a_stride + i;
      return transpose_tiles(from, g.a_stride, height, depth, room);
    }
    const long stride = g.a_stride * Kind::kElement;
    const long bytes = depth * Kind::kElement;
    const char* from = a + i * stride + k * Kind::kElement;
    if (height % (2 * kTile) == 0 && bytes % 64 == 0 && stride % 4096 != 0) {
      return {from, stride, kTile * stride, 64};
    }
    return copy_tiles(from, stride, height, bytes, room);
  }

  void multiply(
      const TiledA& a,
      long height,
      long k,
      long depth,
      Sink s
  ) const {
    constexpr long kWordElements = 4 / Kind::kElement;
    const long words = round_up(s.g->k, kTile * kWordElements) / kWordElements;
    const long panel = (words + Kind::kExtraRows) * kPanelBytes;
    const char* b = static_cast<const char*>(s.g->packed) +
                    s.j / kPanel * panel + k / kWordElements * kPanelBytes;
    const long across = (depth * Kind::kElement + 63) / 64;
    const long pieces = (height + 2 * kTile - 1) / (2 * kTile);
    // The same stretch of the panel after this one, a share with each piece.
    const bool more = s.j + kPanel < s.g->n;
    const long lines = more ? (32 + pieces - 1) / pieces : 0;
    for (long t = 0; t < pieces; ++t) {
      const long rows = smaller(2 * kTile, height - t * 2 * kTile);
      const char* tile_a = a.data + 2 * t * a.tile_rows;
      const char* next = b + panel + t * across * lines * 64;
      open(s);
      if (rows > kTile) {
        multiply_tiles<Kind, true>(tile_a, a, b, across, next, lines);
      } else {
        multiply_tiles<Kind, false>(tile_a, a, b, across, next, lines);
      }
      close(s, rows);
      s.i += 2 * kTile;
      s.partial = static_cast<Sum*>(s.partial) + 2 * kTile * s.partial_stride;
    }
  }

 private:
  HEARTH_INLINE static void open(const Sink& s) {
    if (s.first) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      return;
    }
    auto* p = static_cast<Sum*>(s.partial);
    const long stride = s.partial_stride * 4;
    _tile_loadd(0, p, stride);
    _tile_loadd(1, p + kTile, stride);
    _tile_loadd(2, p + kTile * s.partial_stride, stride);
    _tile_loadd(3, p + kTile * s.partial_stride + kTile, stride);
  }
  HEARTH_INLINE static void put(Sum* p, long stride) {
    _tile_stored(0, p, stride * 4);
    _tile_stored(1, p + kTile, stride * 4);
    _tile_stored(2, p + kTile * stride, stride * 4);
    _tile_stored(3, p + kTile * stride + kTile, stride * 4);
  }
  HEARTH_INLINE static void close(const Sink& s, long rows) {
    if (!s.last) return put(static_cast<Sum*>(s.partial), s.partial_stride);
    alignas(64) Sum sums[2 * kTile * kPanel];
    put(sums, kPanel);
    finish_rows(s, sums, kPanel, rows);
  }
};

template <class Kind>
void run_tiles(
    const GemmArgs& g,
    GemmRange rows,
    GemmRange columns,
    void* scratch
) noexcept {
  tiles::configure();
  run_range<TileCore<Kind>>(g, rows, columns, scratch);
  _tile_release();
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
