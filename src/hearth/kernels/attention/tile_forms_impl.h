#pragma once
// Rows of bf16 in the forms that products of tiles read, tile after tile, and
// results back into rows. A left operand's tile is 16 rows by 32 elements, a
// right one's 16 pairs of rows by 16 columns. Elements past the head size and
// rows past the last are zeros.
#include "hearth/kernels/attention/pack_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// The largest head size whose results fit into four tiles.
constexpr long kTileMaxDim = 64;
constexpr long kTileElements = 512;  // bf16
constexpr long kTileSums = 256;      // floats

inline __mmask32 first_of(long n) {
  return _bzhi_u32(~0u, static_cast<unsigned>(least(n, 32)));
}

// Tiles of 32 dims that a head takes.
inline long depth_of(const AttentionArgs& a) {
  return round_up(a.dim, 32) / 32;
}

// `count` rows of one head.
struct TokenRows {
  const char* data;
  long stride;  // bytes
  long count, dim;

  TokenRows(
      const AttentionInput& x,
      const AttentionArgs& a,
      long batch,
      long token,
      long head,
      long n
  )
      : data(address(x, AttentionType::kBfloat16, batch, token, head)),
        stride(x.token * 2),
        count(n),
        dim(a.dim) {}
  // Elements [32 d, 32 d + 32) of row i.
  HEARTH_INLINE __m512i part(long i, long d) const {
    if (i >= count) return _mm512_setzero_si512();
    return _mm512_maskz_loadu_epi16(
        first_of(dim - d * 32), data + i * stride + d * 64
    );
  }
};

// Prefetches rows that are read soon. They lie too far apart for a hardware
// prefetcher, and products leave memory idle, so step() prefetches a few rows
// between products.
class RowPrefetch {
 public:
  explicit RowPrefetch(const AttentionArgs& a) : bytes_(a.dim * 2) {}
  void add(const void* rows, long stride, long count) {
    if (count > 0 && used_ < kMost) {
      list_[used_++] = {static_cast<const char*>(rows), stride, count};
    }
  }
  void add(const TokenRows& rows) { add(rows.data, rows.stride, rows.count); }
  // Spreads all of them over so many calls of step().
  void spread(long calls) {
    long all = 0;
    for (int i = 0; i < used_; ++i) all += list_[i].left;
    share_ = all / most(calls, 1) + 1;
  }
  HEARTH_INLINE void step() {
    for (long n = share_; n > 0 && used_ > 0; --n) {
      Rows& r = list_[used_ - 1];
      for (long i = 0; i < bytes_; i += 64) __builtin_prefetch(r.at + i, 0, 2);
      r.at += r.stride;
      if (--r.left == 0) --used_;
    }
  }
  void forget() { used_ = 0; }

 private:
  static constexpr int kMost = 8;
  struct Rows {
    const char* at;
    long stride, left;
  };
  Rows list_[kMost];
  int used_ = 0;
  long bytes_, share_ = 0;
};

// Whether all elements of the rows seen are below 2^33 in size, so that the
// scores of such rows stay finite. NaN and infinity are not.
class Bounded {
 public:
  HEARTH_INLINE void see(__m512i row) {
    const __m512i size = _mm512_and_si512(row, _mm512_set1_epi16(0x7fff));
    largest_ = _mm512_max_epu16(largest_, size);
  }
  operator bool() const {
    return _mm512_cmpge_epu16_mask(largest_, _mm512_set1_epi16(0x5000)) == 0;
  }

 private:
  __m512i largest_ = _mm512_setzero_si512();
};

// Rows [i, i + 16) as a left operand: [depth] tiles.
inline void rows_left(
    const TokenRows& rows,
    long i,
    long depth,
    Bf16* to,
    Bounded& bounded
) {
  for (long r = 0; r < 16; ++r, to += 32) {
    for (long d = 0; d < depth; ++d) {
      const __m512i part = rows.part(i + r, d);
      bounded.see(part);
      _mm512_store_si512(to + d * kTileElements, part);
    }
  }
}

// Rows [i, i + 16) as columns of a right operand, pairs over dims: [depth].
inline void transposed_rows_right(
    const TokenRows& rows,
    long i,
    long depth,
    Bf16* to,
    Bounded& bounded
) {
  alignas(64) char memory[16 * 64];
  for (long d = 0; d < depth; ++d, to += kTileElements) {
    for (long r = 0; r < 16; ++r) {
      const __m512i part = rows.part(i + r, d);
      bounded.see(part);
      _mm512_store_si512(memory + r * 64, part);
    }
    transpose_words(memory, 64, to, 64);
  }
}

// Rows [i, i + 32) as a right operand, pairs of rows by dims: [2 depth].
inline void rows_right(const TokenRows& rows, long i, long depth, Bf16* to) {
  for (long d = 0; d < depth; ++d, to += 2 * kTileElements) {
    for (long r = 0; r < 16; ++r) {
      interleave_words(
          rows.part(i + 2 * r, d), rows.part(i + 2 * r + 1, d), to + r * 32,
          to + kTileElements + r * 32
      );
    }
  }
}

// Rows [i, i + 32) as columns of a left operand, dims by rows: [2 depth].
inline void transposed_rows_left(
    const TokenRows& rows,
    long i,
    long depth,
    Bf16* to
) {
  alignas(64) Bf16 pairs[2 * kTileElements];
  for (long d = 0; d < depth; ++d, to += 2 * kTileElements) {
    const auto row = [&](long r) { return rows.part(i + r, d); };
    for (long r = 0; r < 16; ++r) {
      interleave_words(
          row(2 * r), row(2 * r + 1), pairs + r * 32,
          pairs + kTileElements + r * 32
      );
    }
    transpose_words(pairs, 64, to, 64);
    transpose_words(pairs + kTileElements, 64, to + kTileElements, 64);
  }
}

// Where a token's row of a result begins, bf16.
inline char* row_of(
    const AttentionOutput& x,
    long batch,
    long token,
    long head
) {
  return static_cast<char*>(x.data) +
         (batch * x.batch + token * x.token + head * x.head) * 2;
}

// Stores sums of 16 tokens, dims by tokens in [2 depth] tiles, times a factor
// for each token, as `count` rows of bf16.
inline void store_transposed(
    const float* sums,
    F32 by,
    long dim,
    char* to,
    long stride,
    long count
) {
  // Pairs (low, high), of both halves alternately.
  alignas(64) static constexpr unsigned short kMixed[32] = {
      0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
      8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
  };
  const __m512i mixed = _mm512_load_si512(kMixed);
  alignas(64) char pairs[16 * 64], transposed[16 * 64];
  for (long d = 0; d < dim; d += 32) {
    for (long i = 0; i < 16; ++i, sums += 2 * kLanes) {
      const F32 low = load(sums) * by, high = load(sums + kLanes) * by;
      const auto both = (__m512i)_mm512_cvtne2ps_pbh(high.v, low.v);
      _mm512_store_si512(pairs + i * 64, _mm512_permutexvar_epi16(mixed, both));
    }
    transpose_words(pairs, 64, transposed, 64);
    for (long i = 0; i < count; ++i) {
      _mm512_mask_storeu_epi16(
          to + i * stride + d * 2, first_of(dim - d),
          _mm512_load_si512(transposed + i * 64)
      );
    }
  }
}

// Stores sums of 16 tokens, tokens by dims in [2 depth] tiles, times a factor,
// as `count` rows of bf16.
inline void store_straight(
    const float* sums,
    float factor,
    long dim,
    char* to,
    long stride,
    long count
) {
  const F32 by = splat(factor);
  for (long i = 0; i < count; ++i, sums += kLanes, to += stride) {
    for (long d = 0; d < dim; d += 32) {
      const float* from = sums + d / 16 * kTileSums;
      const F32 low = load(from) * by, high = load(from + kTileSums) * by;
      _mm512_mask_storeu_epi16(
          to + d * 2, first_of(dim - d),
          (__m512i)_mm512_cvtne2ps_pbh(high.v, low.v)
      );
    }
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
