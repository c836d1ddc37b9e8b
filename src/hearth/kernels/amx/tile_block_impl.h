#pragma once
// Blocks of A in the order tiles read them in.
#include "hearth/kernels/gemm_pack_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr long kTile = 16;  // rows, words of depth, columns
constexpr long kTileBytes = 16 * 64;
constexpr long kPieceRows = 2 * kTile;
constexpr long kStripe = 16;  // tiles of depth

inline __mmask64 first_bytes(long n) {
  return _bzhi_u64(~0ull, static_cast<unsigned>(n < 0 ? 0 : n > 64 ? 64 : n));
}

// Where the tiles of a block of A lie: stripe after stripe; in a stripe piece
// after piece, in a piece the two tiles of each step side by side.
struct BlockShape {
  long pieces, across, stripe;  // across and stripe in tiles of depth
  BlockShape(long height, long tiles)
      : pieces((height + kPieceRows - 1) / kPieceRows), across(tiles) {
    const long stripes = (across + kStripe - 1) / kStripe;
    stripe = stripes > 0 ? (across + stripes - 1) / stripes : 1;
  }
  long steps(long from) const { return smaller(stripe, across - from); }
  long stripe_end(long w) const { return (w / stripe + 1) * stripe; }
  // Of the upper tile; the lower one follows it.
  char* place(void* room, long piece, long w) const {
    const long from = w / stripe * stripe;
    const long tiles = from * pieces + piece * steps(from) + (w - from);
    return static_cast<char*>(room) + tiles * 2 * kTileBytes;
  }
};

// Rows as they are, filled up with zeros: `count` tiles of depth to those of
// the block from `first` on.
inline void copy_tiles(
    const char* a,
    long stride,
    long height,
    long bytes,
    const BlockShape& shape,
    void* room,
    long first,
    long count
) {
  for (long row = 0; row < shape.pieces * kPieceRows; ++row) {
    const char* source = a + row * stride;
    long filled = row < height ? bytes : 0;
    for (long w = first; w < first + count;) {
      char* to = shape.place(room, row / kPieceRows, w) + row % kPieceRows * 64;
      const long end = smaller(first + count, shape.stripe_end(w));
      for (; w < end; ++w, to += 2 * kTileBytes, source += 64, filled -= 64) {
        const __mmask64 mask = first_bytes(filled);
        _mm512_store_si512(to, _mm512_maskz_loadu_epi8(mask, source));
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
        // The rows lie far apart, which no hardware prefetcher predicts.
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

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
