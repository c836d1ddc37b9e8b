#pragma once
// Products on AMX tiles, bf16 and int8 alike: 16 rows of 64 bytes of A against
// 16 words of depth by 16 columns of B. Four tiles hold a 32x32 piece of C.
//
// A block of A is copied once into the order its tiles are read in and stays in
// the second cache, from where it streams past the first. A stripe of a panel
// of B (kStripe deep) stays in the first, and the next one is fetched
// meanwhile. A finished piece is converted while the next one is multiplied.
#include "hearth/kernels/amx/tiles_impl.h"
#include "hearth/kernels/gemm_pack_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr long kTile = 16;  // rows, words of depth, columns
constexpr long kTileBytes = 16 * 64;
constexpr long kPanelBytes = kPanel * 4;  // one word of depth of a panel
constexpr long kPieceRows = 2 * kTile;
constexpr long kPieceWords = kPieceRows * kPanel;
constexpr long kStripe = 16;               // tiles of depth
constexpr long kTileBlockBytes = 1 << 20;  // of A
constexpr long kTileBlockRows = 256;
constexpr long kTileBlockDepth =
    kTileBlockBytes / kTileBlockRows / 64;  // of depth

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

// Where the tiles of a block of A lie: stripe after stripe; in a stripe piece
// after piece, in a piece the two tiles of each step side by side.
struct BlockShape {
  long pieces, across, stripe;  // across and stripe in tiles of depth
  BlockShape(long height, long bytes)
      : pieces((height + kPieceRows - 1) / kPieceRows),
        across((bytes + 63) / 64) {
    const long stripes = (across + kStripe - 1) / kStripe;
    stripe = stripes > 0 ? (across + stripes - 1) / stripes : 1;
  }
  long steps(long from) const { return smaller(stripe, across - from); }
  // Of the upper tile; the lower one follows it.
  char* place(void* room, long piece, long w) const {
    const long from = w / stripe * stripe;
    const long tiles = from * pieces + piece * steps(from) + (w - from);
    return static_cast<char*>(room) + tiles * 2 * kTileBytes;
  }
};

// Rows as they are, filled up with zeros.
inline void copy_tiles(
    const char* a,
    long stride,
    long height,
    long bytes,
    const BlockShape& shape,
    void* room
) {
  for (long row = 0; row < shape.pieces * kPieceRows; ++row) {
    const char* source = a + row * stride;
    const long filled = row < height ? bytes : 0;
    for (long from = 0; from < shape.across; from += shape.stripe) {
      char* to =
          shape.place(room, row / kPieceRows, from) + row % kPieceRows * 64;
      const long end = from + shape.steps(from);
      for (long w = from; w < end; ++w, to += 2 * kTileBytes) {
        const __mmask64 mask = first_bytes(filled - w * 64);
        _mm512_store_si512(to, _mm512_maskz_loadu_epi8(mask, source + w * 64));
      }
    }
  }
}

// Columns of bf16 as rows: pairs over depth first, then words transposed. `at`
// says where 32 columns from i on of row k begin.
template <class At>
inline void transpose_tiles(
    const At& at,
    long height,
    long depth,
    const BlockShape& shape,
    void* room
) {
  constexpr long kTileDepth = 2 * kTile;
  alignas(64) Word pairs[2][kTile * kTile];
  for (long w = 0; w < shape.across; ++w) {
    for (long piece = 0; piece < shape.pieces; ++piece) {
      const long i = piece * kPieceRows;
      const __mmask64 columns = first_bytes(2 * (height - i));
      const auto row = [&](long k) {
        // Tiles lie far apart: no processor guesses the next one's.
        _mm_prefetch(at(i, k + kTileDepth), _MM_HINT_T0);
        return _mm512_maskz_loadu_epi8(
            k < depth ? columns : first_bytes(0), at(i, k)
        );
      };
      for (long r = 0; r < kTile; ++r) {
        const long k = w * kTileDepth + 2 * r;
        const __m512i low = row(k), high = row(k + 1);
        interleave_words(low, high, pairs[0] + r * kTile, pairs[1] + r * kTile);
      }
      char* to = shape.place(room, piece, w);
      for (int t = 0; t < 2; ++t) {
        transpose_words(pairs[t], 64, to + t * kTileBytes, 64);
      }
    }
  }
}

// How a finished piece gets to C. The first three know that all columns are
// there and that there is no epilogue.
enum class Finish : unsigned char { bf16, f32, f32_added, epilogue };

inline Finish finish_of(const GemmArgs& g, long j) {
  if (j + kPanel > g.n || !is_plain(g)) return Finish::epilogue;
  if (g.c_type == GemmScalar::f32)
    return g.accumulate ? Finish::f32_added : Finish::f32;
  return g.accumulate ? Finish::epilogue : Finish::bf16;
}

// A finished piece whose rows still have to be converted and stored.
struct PendingPiece {
  const GemmArgs* g = nullptr;
  long i = 0, j = 0, row = 0, rows = 0;
  Finish finish = Finish::epilogue;
  const float* sums = nullptr;

  HEARTH_INLINE void advance(long count) {
    const long end = smaller(rows, row + count);
    if (row >= end) return;
    switch (finish) {
      case Finish::bf16:
        store<Finish::bf16>(end);
        break;
      case Finish::f32:
        store<Finish::f32>(end);
        break;
      case Finish::f32_added:
        store<Finish::f32_added>(end);
        break;
      case Finish::epilogue:
        store_with_epilogue(end);
        break;
    }
    row = end;
  }

 private:
  // Members are read once: a store may be to anything, for all GCC knows.
  template <Finish kFinish>
  HEARTH_INLINE void store(long end) const {
    constexpr long kBytes = kFinish == Finish::bf16 ? 2 : 4;
    const long stride = g->c_stride * kBytes;
    const float* from = sums + row * kPanel;
    char* c = static_cast<char*>(g->c) + (i + row) * stride + j * kBytes;
    for (long n = end - row; n > 0; --n, from += kPanel, c += stride) {
      __m512 low = _mm512_load_ps(from), high = _mm512_load_ps(from + 16);
      if constexpr (kFinish == Finish::bf16) {
        _mm512_storeu_si512(c, (__m512i)_mm512_cvtne2ps_pbh(high, low));
      } else {
        if constexpr (kFinish == Finish::f32_added) {
          low = _mm512_add_ps(low, _mm512_loadu_ps(c));
          high = _mm512_add_ps(high, _mm512_loadu_ps(c + 64));
        }
        _mm512_storeu_ps(c, low);
        _mm512_storeu_ps(c + 64, high);
      }
    }
  }
  [[gnu::noinline]] void store_with_epilogue(long end) const {
    for (long r = row; r < end; ++r) {
      if (g->c_type == GemmScalar::bf16)
        finish_row<Bf16>(*g, i + r, j, sums + r * kPanel);
      else
        finish_row<float>(*g, i + r, j, sums + r * kPanel);
    }
  }
};

// What is asked for while a piece is multiplied: the next stripe of B, and the
// rows of C that the piece will go to. A store to a line that is far away holds
// up the loads of tiles behind it.
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

// One 32x32 (or, kBoth unset, 16x32) piece over a stripe. A is read once a
// panel and would push B out of the first cache, hence the streaming loads.
template <class Kind, bool kBoth>
HEARTH_INLINE void multiply_tiles(
    const char* a,
    const char* b,
    long steps,
    Ahead ahead,
    PendingPiece& pending
) {
  // Nothing to sum is no step at all.
  const long rows = steps > 0 ? (kPieceRows - 1 + steps) / steps : 0;
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

template <class Kind>
class TileProduct {
  using Sum = typename Kind::Sum;
  static constexpr long kWordElements = 4 / Kind::kElement;
  static constexpr long kGroupPanels = kGroup / kPanel;

 public:
  static constexpr std::size_t kScratch =
      sizeof(Word) * kTileBlockRows * kGroup + kTileBlockBytes;

  TileProduct(const GemmArgs& g, void* scratch)
      : g_(g),
        partial_(static_cast<Sum*>(scratch)),
        room_(
            static_cast<char*>(scratch) + sizeof(Word) * kTileBlockRows * kGroup
        ),
        panel_(
            (round_up(g.k, kTile * kWordElements) / kWordElements +
             Kind::kExtraRows) *
            kPanelBytes
        ),
        c_bytes_(g.c_type == GemmScalar::bf16 ? 2 : 4) {}

  void run(GemmRange rows, GemmRange columns) {
    const long all = (g_.k * Kind::kElement + 63) / 64;
    // Deeper sums take half the rows, and yet deeper ones come in blocks.
    const bool half = all > kTileBlockDepth && all <= 2 * kTileBlockDepth;
    const long height = half ? kTileBlockRows / 2 : kTileBlockRows;
    const long depth = (half ? 2 : 1) * kTileBlockDepth * 64 / Kind::kElement;
    const long group = g_.k > depth ? kGroup : round_up(columns.end, kPanel);
    for (long i = rows.begin; i < rows.end; i += height) {
      for (long j = columns.begin; j < columns.end; j += group) {
        const GemmRange part{j, smaller(columns.end, j + group)};
        long k = 0;
        do {
          const long deep = smaller(depth, g_.k - k);
          block(i, smaller(height, rows.end - i), k, deep, part);
          k += deep;
        } while (k < g_.k);
      }
      if (g_.gate == nullptr) continue;
      pending_.advance(kPieceRows);
      gate_rows(g_, {i, smaller(rows.end, i + height)}, columns);
    }
    pending_.advance(kPieceRows);
  }

 private:
  const GemmArgs& g_;
  Sum* partial_;
  char* room_;
  const long panel_;  // bytes
  const long c_bytes_;
  PendingPiece pending_;
  int turn_ = 0;
  alignas(64) Sum sums_[2][kPieceWords];

  void block(long i, long height, long k, long depth, GemmRange columns) {
    const long bytes = depth * Kind::kElement;
    const BlockShape shape(height, bytes);
    const auto* a = static_cast<const char*>(g_.a);
    const char* tiles = nullptr;  // where A lies in blocks already,
    long piece = 0;               // and bytes from one piece to the next
    if (g_.a_in_blocks && !g_.a_transposed) {
      tiles = a + block_place(i, k, g_.a_stride) * Kind::kElement;
      piece = kPieceRows * g_.a_stride * Kind::kElement;
    } else if (g_.a_transposed) {
      transpose(i, height, k, depth, shape);
    } else {
      const long stride = g_.a_stride * Kind::kElement;
      const char* from = a + i * stride + k * Kind::kElement;
      copy_tiles(from, stride, height, bytes, shape, room_);
    }
    const bool opens = k == 0, closes = k + depth >= g_.k;
    Sum* partial = partial_;
    const bool blocked = !(opens && closes);
    for (long j = columns.begin; j < columns.end; j += kPanel) {
      const char* b = static_cast<const char*>(g_.packed) +
                      j / kPanel * panel_ + k / kWordElements * kPanelBytes;
      const char* next = j + kPanel < columns.end ? b + panel_ : nullptr;
      long w = 0;
      do {
        const long steps = shape.steps(w);
        const bool last = w + steps >= shape.across;
        const char* stripe = b + w * kTile * kPanelBytes;
        const Part part{
            .i = i,
            .j = j,
            .height = height,
            .steps = steps,
            .opens = opens && w == 0,
            .closes = closes && last,
            .a = piece > 0 ? tiles + w * 2 * kTileBytes
                           : shape.place(room_, 0, w),
            .piece = piece > 0 ? piece : steps * 2 * kTileBytes,
            .b = stripe,
            .next = last ? next : stripe + steps * kTile * kPanelBytes,
            .partial = partial
        };
        stripe_of(part, shape);
        w += steps;
      } while (w < shape.across);
      if (blocked) partial += shape.pieces * kPieceWords;
    }
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
    long i, j, height, steps;
    bool opens, closes;
    const char* a;
    long piece;  // bytes from one piece of A to the next
    const char *b, *next;
    Sum* partial;
  };
  HEARTH_INLINE void stripe_of(const Part& p, const BlockShape& shape) {
    // A share of the next stripe with each step.
    const long lines =
        p.next ? (kPieceRows + shape.pieces - 1) / shape.pieces : 0;
    for (long t = 0; t < shape.pieces; ++t) {
      const long rows = smaller(kPieceRows, p.height - t * kPieceRows);
      const char* a = p.a + t * p.piece;
      Ahead ahead{p.next + t * p.steps * lines * 64, lines};
      if (p.closes) {
        const long at = (p.i + t * kPieceRows) * g_.c_stride + p.j;
        ahead.sum = static_cast<const char*>(g_.c) + at * c_bytes_;
        ahead.sum_stride = g_.c_stride * c_bytes_;
        ahead.sum_rows = rows;
        ahead.wide = c_bytes_ == 4;
      }
      Sum* partial = p.partial + t * kPieceWords;
      open(p.opens, partial);
      if (rows > kTile)
        multiply_tiles<Kind, true>(a, p.b, p.steps, ahead, pending_);
      else
        multiply_tiles<Kind, false>(a, p.b, p.steps, ahead, pending_);
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
  // `right` words from a tile to its right neighbour, twice that to the one
  // below where tiles follow each other, else 16 rows.
  HEARTH_INLINE static void put(Sum* p, long stride, long right) {
    const long below = stride == kTile ? 2 * right : kTile * stride;
    _tile_stored(0, p, stride * 4);
    _tile_stored(1, p + right, stride * 4);
    _tile_stored(2, p + below, stride * 4);
    _tile_stored(3, p + below + right, stride * 4);
  }
  HEARTH_INLINE void close(long i, long j, long rows) {
    pending_.advance(kPieceRows);
    Sum* sums = sums_[turn_];
    turn_ ^= 1;
    put(sums, kPanel, kTile);
    if constexpr (Kind::kElement == 1) {
      finish_rows(Sink{&g_, i, j, true, true, nullptr, 0}, sums, kPanel, rows);
    } else {
      pending_ = {&g_, i, j, 0, rows, finish_of(g_, j), sums};
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
