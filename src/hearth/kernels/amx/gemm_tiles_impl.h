#pragma once
// Products on AMX tiles, bf16 and int8 alike: 16 rows of 64 bytes of A against
// 16 words of depth by 16 columns of B. Four tiles hold a 32x32 piece of C.
//
// A block of A is copied once into the order its tiles are read in and stays in
// the second-level cache, from where it is streamed past the first. A stripe of
// a panel of B (kStripe deep) stays in the first, and the next stripe is
// prefetched meanwhile. A finished piece is converted while the next one is
// multiplied.
#include "hearth/kernels/amx/tile_finish_impl.h"
#include "hearth/kernels/amx/tiles_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr long kPanelBytes = kPanel * 4;  // one word of depth of a panel
constexpr long kPieceWords = kPieceRows * kPanel;
// A block of A holds the whole depth, with the more rows the less deep it is,
// so that a panel of B serves all of them once it is in the cache. A greater
// depth comes in blocks of kDeepTiles, with the sums of a group of columns
// beside them in the second-level cache.
constexpr long kTileBlockBytes = 704 << 10;
constexpr long kTileBlockRows = 256, kTallBlockRows = 1024;
constexpr long kTileBlockDepth = kTileBlockBytes / kTileBlockRows / 64;
constexpr long kDeepTiles = kStripe, kDeepColumns = 1024;

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

// What is prefetched while a piece is multiplied: the next stripe of B, and the
// rows of C that the piece will be stored to, because a store to a line that is
// not in a cache holds up the tile loads behind it.
struct Ahead {
  const char* at;
  long lines;  // each step
  const char* sum = nullptr;
  long sum_stride = 0, sum_rows = 0;  // bytes
  bool wide = false;                  // two lines a row

  HEARTH_INLINE void step(long rows) {
    for (long i = 0; i < lines; ++i, at += 64) _mm_prefetch(at, _MM_HINT_T1);
    for (long i = smaller(rows, sum_rows); i > 0; --i, --sum_rows) {
      _mm_prefetch(sum, _MM_HINT_T1);
      if (wide) _mm_prefetch(sum + 64, _MM_HINT_T1);
      sum += sum_stride;
    }
  }
};

// One 32x32 (or, kBoth unset, 16x32) piece over tiles of depth that lie one
// after the other. A is read once a panel and would push B out of the
// first-level cache, hence the streaming loads. Each step also converts and
// stores `rows` rows of the pending piece.
template <class Kind, bool kBoth>
HEARTH_INLINE void multiply_tiles(
    const char* a,
    const char* b,
    long steps,
    long rows,
    Ahead& ahead,
    PendingPiece& pending
) {
  for (long w = 0; w < steps; ++w) {
    _tile_loadd(6, b, kPanelBytes);
    _tile_stream_loadd(4, a, 64);
    _tile_loadd(7, b + 64, kPanelBytes);
    Kind::top();
    if constexpr (kBoth) {
      _tile_stream_loadd(5, a + kTileBytes, 64);
      Kind::bottom();
    }
    ahead.step(rows);
    pending.advance(rows);
    a += 2 * kTileBytes;
    b += kTile * kPanelBytes;
  }
}

// The depth of every term, one after the other, each in whole tiles.
template <class Kind>
class TileDepth {
  static constexpr long kWordElements = 4 / Kind::kElement;

 public:
  // Depth of one term that lies together.
  struct Run {
    const char* a;  // the first row, from there on
    long a_stride, a_bytes;
    const char* b;  // the first panel
    long panel;     // bytes from one panel to the next
    long tiles;
  };

  explicit TileDepth(const GemmArgs& g) {
    add(g.a, g.a_stride, g.k, g.packed);
    for (const GemmTerm& t : g.more) add(t.a, t.a_stride, t.k, t.packed);
  }
  long tiles() const { return tiles_; }

  // Calls use(run, where it begins) for `count` tiles from `first` on.
  template <class Use>
  HEARTH_INLINE void each_run(long first, long count, const Use& use) const {
    const long end = first + count;
    for (int i = 0; i < terms_; ++i) {
      const Run& t = term_[i];
      const long begins = first > first_[i] ? first : first_[i];
      const long ends = smaller(end, first_[i] + t.tiles);
      if (begins >= ends) continue;
      const long w = begins - first_[i];
      use(Run{t.a + w * 64, t.a_stride, t.a_bytes - w * 64,
              t.b + w * kTile * kPanelBytes, t.panel, ends - begins},
          begins);
    }
  }

 private:
  Run term_[1 + kMaxGemmTerms];
  long first_[1 + kMaxGemmTerms];
  int terms_ = 0;
  long tiles_ = 0;

  void add(const void* a, long stride, long k, const void* packed) {
    const long bytes = k * Kind::kElement;
    const long words = round_up(k, kTile * kWordElements) / kWordElements;
    term_[terms_] = {
        static_cast<const char*>(a),
        stride * Kind::kElement,
        bytes,
        static_cast<const char*>(packed),
        (words + Kind::kExtraRows) * kPanelBytes,
        (bytes + 63) / 64
    };
    first_[terms_] = tiles_;
    tiles_ += term_[terms_++].tiles;
  }
};

template <class Kind>
class TileProduct {
  using Sum = typename Kind::Sum;
  static constexpr long kWordElements = 4 / Kind::kElement;

 public:
  static constexpr std::size_t kSums =
      sizeof(Word) * kTileBlockRows * kDeepColumns;
  static constexpr std::size_t kScratch = kSums + kTileBlockBytes;

  TileProduct(const GemmArgs& g, void* scratch)
      : g_(g),
        depth_(g),
        partial_(static_cast<Sum*>(scratch)),
        room_(static_cast<char*>(scratch) + kSums),
        c_bytes_(g.c_type == GemmScalar::bf16 ? 2 : 4),
        past_(goes_past(g)) {}

  void run(GemmRange rows, GemmRange columns) {
    const long all = depth_.tiles();
    const bool deep = all > kTileBlockDepth;
    const long height = deep ? kTileBlockRows : tallest(all);
    const long depth = deep ? kDeepTiles : all;
    const long group = deep ? kDeepColumns : round_up(columns.end, kPanel);
    for (long i = rows.begin; i < rows.end; i += height) {
      for (long j = columns.begin; j < columns.end; j += group) {
        const GemmRange part{j, smaller(columns.end, j + group)};
        long w = 0;
        do {
          const long count = smaller(depth, all - w);
          block(i, smaller(height, rows.end - i), w, count, part);
          w += count;
        } while (w < all);
      }
      if (g_.gate == nullptr) continue;
      pending_.advance(kPieceRows);
      gate_rows(g_, {i, smaller(rows.end, i + height)}, columns);
    }
    pending_.advance(kPieceRows);
    if (past_) _mm_sfence();
  }

 private:
  using Run = typename TileDepth<Kind>::Run;

  const GemmArgs& g_;
  const TileDepth<Kind> depth_;
  Sum* partial_;
  char* room_;
  const long c_bytes_;
  const bool past_;
  PendingPiece pending_;
  int which_ = 0;
  alignas(64) Sum sums_[2][kPieceWords];

  static long tallest(long tiles) {
    if (tiles == 0) return kTallBlockRows;
    const long rows = kTileBlockBytes / (tiles * 64) / kPieceRows * kPieceRows;
    return smaller(rows, kTallBlockRows);
  }

  // Tiles `first` to `first` + `count` of the depth.
  void block(long i, long height, long first, long count, GemmRange columns) {
    const BlockShape shape(height, count);
    const long k = first * kTile * kWordElements;
    const char* tiles = nullptr;  // where A lies in blocks already,
    long piece = 0;               // and bytes from one piece to the next
    if (g_.a_in_blocks && !g_.a_transposed) {
      tiles = static_cast<const char*>(g_.a) +
              block_place(i, k, g_.a_stride) * Kind::kElement;
      piece = kPieceRows * g_.a_stride * Kind::kElement;
    } else if (g_.a_transposed) {
      const long depth = smaller(count * kTile * kWordElements, g_.k - k);
      transpose(i, height, k, depth, shape);
    } else {
      depth_.each_run(first, count, [&](const Run& run, long at) {
        copy_tiles(
            run.a + i * run.a_stride, run.a_stride, height, run.a_bytes, shape,
            room_, at - first, run.tiles
        );
      });
    }
    const bool opens = first == 0, closes = first + count >= depth_.tiles();
    Sum* partial = partial_;
    const bool blocked = !(opens && closes);
    for (long j = columns.begin; j < columns.end; j += kPanel) {
      long w = 0;
      do {
        const long steps = shape.steps(w);
        const bool last = w + steps >= shape.across;
        const bool ends = last && j + kPanel >= columns.end;
        const Part part{
            .i = i,
            .j = j,
            .height = height,
            .from = first + w,
            .steps = steps,
            .opens = opens && w == 0,
            .closes = closes && last,
            .a = piece > 0 ? tiles + w * 2 * kTileBytes
                           : shape.place(room_, 0, w),
            .piece = piece > 0 ? piece : steps * 2 * kTileBytes,
            .next = ends   ? nullptr
                    : last ? panel_at(first, j + kPanel)
                           : panel_at(first + w + steps, j),
            .partial = partial
        };
        stripe_of(part, shape);
        w += steps;
      } while (w < shape.across);
      if (blocked) partial += shape.pieces * kPieceWords;
    }
  }

  // Where tile `w` of the depth of the panel of column j is.
  const char* panel_at(long w, long j) const {
    const char* b = nullptr;
    depth_.each_run(w, 1, [&](const Run& run, long) {
      b = run.b + j / kPanel * run.panel;
    });
    return b;
  }

  // Depth is down the rows of what lies at `a`.
  void transpose(
      long i,
      long height,
      long k,
      long depth,
      const BlockShape& shape
  ) {
    const auto* a = static_cast<const Bf16*>(g_.a);
    const long stride = g_.a_stride;
    if (g_.a_in_blocks) {
      const auto at = [=](long column, long row) {
        return a + block_place(k + row, i + column, stride);
      };
      transpose_tiles(at, height, depth, shape, room_);
    } else {
      const Bf16* from = a + k * stride + i;
      const auto at = [=](long column, long row) {
        return from + row * stride + column;
      };
      transpose_tiles(at, height, depth, shape, room_);
    }
  }

  // A stripe of one panel against all pieces of the block.
  struct Part {
    long i, j, height, from, steps;
    bool opens, closes;
    const char* a;
    long piece;  // bytes from one piece of A to the next
    const char* next;
    Sum* partial;
  };
  HEARTH_INLINE void stripe_of(const Part& p, const BlockShape& shape) {
    struct {
      const char* b;
      long steps;
    } runs[1 + kMaxGemmTerms];
    int count = 0;
    depth_.each_run(p.from, p.steps, [&](const Run& run, long) {
      runs[count++] = {run.b + p.j / kPanel * run.panel, run.tiles};
    });
    // Each step prefetches a share of the next stripe.
    const long lines =
        p.next ? (kPieceRows + shape.pieces - 1) / shape.pieces : 0;
    // Rows of the pending piece that go with a step; without depth there is no
    // step.
    const long with_step =
        p.steps > 0 ? (kPieceRows - 1 + p.steps) / p.steps : 0;
    for (long t = 0; t < shape.pieces; ++t) {
      const long rows = smaller(kPieceRows, p.height - t * kPieceRows);
      const char* a = p.a + t * p.piece;
      Ahead ahead{p.next + t * p.steps * lines * 64, lines};
      if (p.closes && !past_) {
        const long at = (p.i + t * kPieceRows) * g_.c_stride + p.j;
        ahead.sum = static_cast<const char*>(g_.c) + at * c_bytes_;
        ahead.sum_stride = g_.c_stride * c_bytes_;
        ahead.sum_rows = rows;
        ahead.wide = c_bytes_ == 4;
      }
      Sum* partial = p.partial + t * kPieceWords;
      open(p.opens, partial);
      for (int r = 0; r < count; ++r) {
        const auto [b, steps] = runs[r];
        if (rows > kTile)
          multiply_tiles<Kind, true>(a, b, steps, with_step, ahead, pending_);
        else
          multiply_tiles<Kind, false>(a, b, steps, with_step, ahead, pending_);
        a += steps * 2 * kTileBytes;
      }
      if (p.closes)
        close(p.i + t * kPieceRows, p.j, rows);
      else
        put(partial, kTile, kTile * kTile);
    }
  }

  HEARTH_INLINE static void open(bool first, const Sum* p) {
    if (first) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      return;
    }
    constexpr long kWords = kTile * kTile;
    _tile_loadd(0, p, 64);
    _tile_loadd(1, p + kWords, 64);
    _tile_loadd(2, p + 2 * kWords, 64);
    _tile_loadd(3, p + 3 * kWords, 64);
  }
  // Stores the four tiles of sums. From a tile to its right neighbour it is
  // `right` words; to the one below it is twice that where whole tiles follow
  // each other (stride is a tile's), and 16 rows where they lie in a matrix.
  HEARTH_INLINE static void put(Sum* p, long stride, long right) {
    const long below = stride == kTile ? 2 * right : kTile * stride;
    _tile_stored(0, p, stride * 4);
    _tile_stored(1, p + right, stride * 4);
    _tile_stored(2, p + below, stride * 4);
    _tile_stored(3, p + below + right, stride * 4);
  }
  HEARTH_INLINE void close(long i, long j, long rows) {
    pending_.advance(kPieceRows);
    Sum* sums = sums_[which_];
    which_ ^= 1;
    put(sums, kPanel, kTile);
    if constexpr (Kind::kElement == 1) {
      finish_rows(Sink{&g_, i, j, true, true, nullptr, 0}, sums, kPanel, rows);
    } else {
      pending_ = {&g_, i, j, 0, rows, finish_of(g_, j, past_), sums};
    }
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
  TileProduct<Kind>(g, scratch).run(rows, columns);
  _tile_release();
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
