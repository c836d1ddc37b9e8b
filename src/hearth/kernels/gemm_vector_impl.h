#pragma once
// Products on vector registers: a tile of kTileRows x kPanel sums stays in
// registers over the whole depth of a block, while a panel of B streams past
// and a word of A is spread over a register for each row.
#include "hearth/kernels/gemm_pack_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kTileRows = kLanes == 16 ? 12 : kLanes >= 4 ? 6 : 2;
// Rows 4 KiB apart share a cache set, so a copy's rows are spaced by some more.
constexpr long kSpareWords = 16;

// Words of A. By row: word (r, w) lies at row_bytes * r + 4 * w. By word, when
// row_bytes is 4: tile after tile of kTileRows rows, each as deep as the block,
// with the words of a tile's rows side by side.
struct ABlock {
  const char* words;
  long row_bytes;
  long tile_bytes;  // from one tile of kTileRows rows to the next
};
constexpr long kWordBytes = kTileRows * 4;

// Where the rows of a tile are: every third has a pointer of its own and the
// two after it are reached by an index, or the addresses alone would take more
// registers than there are.
template <int kRows>
struct Rows {
  static constexpr int kCount = (kRows + 2) / 3;
  const char* base[kCount];
  HEARTH_INLINE const char* at(int r, long row) const {
    return base[r / 3] + r % 3 * row;
  }
};

HEARTH_INLINE float float_at(const char* p) {
  return __builtin_bit_cast(
      float, static_cast<Word>(*reinterpret_cast<const LooseWord*>(p))
  );
}

// One word of depth: an fp32 of each operand.
struct Fp32Step {
  static constexpr int kWords = 1;  // words of A
  static constexpr int kElements = 1;
  template <int kRows>
  HEARTH_INLINE static void add(
      F32 (&sums)[kRows][kPanelVectors],
      const Rows<kRows>& a,
      long row,
      long,
      const Word* b
  ) {
    F32 column[kPanelVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kPanelVectors; ++v) {
      column[v] = load(reinterpret_cast<const float*>(b) + v * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F32 x = splat(float_at(a.at(r, row)));
#pragma GCC unroll 16
      for (int v = 0; v < kPanelVectors; ++v) {
        sums[r][v] = fma(x, column[v], sums[r][v]);
      }
    }
  }
};

// A pair of bf16 of B, widened in registers; A was widened when it was copied,
// so a pair is two words of it.
struct WidenedStep {
  static constexpr int kWords = 2;
  static constexpr int kElements = 2;
  template <int kRows>
  HEARTH_INLINE static void add(
      F32 (&sums)[kRows][kPanelVectors],
      const Rows<kRows>& a,
      long row,
      long word,
      const Word* b
  ) {
    I32 pairs[kPanelVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kPanelVectors; ++v) {
      pairs[v] = bits(load(reinterpret_cast<const float*>(b) + v * kLanes));
    }
    const I32 upper = splat_int(static_cast<int>(0xffff0000u));
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      F32 column[kPanelVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kPanelVectors; ++v) {
        column[v] = from_bits(half == 0 ? pairs[v] << 16 : pairs[v] & upper);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const F32 x = splat(float_at(a.at(r, row) + half * word));
#pragma GCC unroll 16
        for (int v = 0; v < kPanelVectors; ++v) {
          sums[r][v] = fma(x, column[v], sums[r][v]);
        }
      }
    }
  }
};

#if defined(__AVX512BF16__)
// A pair of bf16 of each operand, multiplied as they are.
struct PairStep {
  static constexpr int kWords = 1;
  static constexpr int kElements = 2;
  template <int kRows>
  HEARTH_INLINE static void add(
      F32 (&sums)[kRows][kPanelVectors],
      const Rows<kRows>& a,
      long row,
      long,
      const Word* b
  ) {
    __m512i column[kPanelVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kPanelVectors; ++v) {
      column[v] = _mm512_load_si512(b + v * kLanes);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const LooseWord* p = reinterpret_cast<const LooseWord*>(a.at(r, row));
      const __m512i x = _mm512_set1_epi32(static_cast<int>(*p));
#pragma GCC unroll 16
      for (int v = 0; v < kPanelVectors; ++v) {
        sums[r][v].v =
            _mm512_dpbf16_ps(sums[r][v].v, (__m512bh)x, (__m512bh)column[v]);
      }
    }
  }
};
#endif

template <class T, int kRows>
HEARTH_INLINE void store_plain(
    const Sink& s,
    F32 (&sums)[kRows][kPanelVectors]
) {
  const GemmArgs& g = *s.g;
  T* c = static_cast<T*>(g.c) + s.i * g.c_stride + s.j;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kPanelVectors; ++v) {
      T* p = c + r * g.c_stride + v * kLanes;
      store(p, g.accumulate ? sums[r][v] + load(p) : sums[r][v]);
    }
  }
}

template <int kRows>
HEARTH_INLINE void finish_tile(
    const Sink& s,
    F32 (&sums)[kRows][kPanelVectors]
) {
  auto* partial = static_cast<float*>(s.partial);
  if (!s.first || !s.last) {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kPanelVectors; ++v) {
        float* p = partial + r * s.partial_stride + v * kLanes;
        if (!s.first) sums[r][v] += load(p);
        if (!s.last) store(p, sums[r][v]);
      }
    }
  }
  if (!s.last) return;
  if (s.g->n - s.j >= kPanel && is_plain(*s.g)) {
    if (s.g->c_type == GemmScalar::bf16)
      store_plain<Bf16>(s, sums);
    else
      store_plain<float>(s, sums);
    return;
  }
  alignas(64) float rest[kRows * kPanel];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kPanelVectors; ++v) {
      store(rest + r * kPanel + v * kLanes, sums[r][v]);
    }
  }
  finish_rows(s, rest, kPanel, kRows);
}

// Prefetches the tile's piece of C when its sums begin: it is needed when they
// are done, and often has to come from memory.
template <int kRows>
HEARTH_INLINE void prefetch_c(const Sink& s) {
  if (!s.last) return;
  const GemmArgs& g = *s.g;
  const long bytes = g.c_type == GemmScalar::bf16 ? 2 : 4;
  const char* c =
      static_cast<const char*>(g.c) + (s.i * g.c_stride + s.j) * bytes;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    for (long i = 0; i < kPanel * bytes; i += 64) {
      __builtin_prefetch(c + i, 1);
    }
    c += g.c_stride * bytes;
  }
}

template <class Step, int kRows, bool kByWord>
__attribute__((noinline)) void tile(
    ABlock a,
    long steps,
    const Word* b,
    long ahead,
    const Sink& s
) {
  prefetch_c<kRows>(s);
  F32 sums[kRows][kPanelVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kPanelVectors; ++v) sums[r][v] = zero();
  }
  const long row = kByWord ? 4 : a.row_bytes;
  const long word = kByWord ? kWordBytes : 4;
  Rows<kRows> at;
#pragma GCC unroll 8
  for (int i = 0; i < Rows<kRows>::kCount; ++i) {
    at.base[i] = a.words + 3 * i * row;
  }
  for (long k = 0; k < steps; ++k) {
    Step::template add<kRows>(sums, at, row, word, b);
    for (int line = 0; line < kPanel; line += 16) {
      __builtin_prefetch(b + ahead + line, 0, 2);
    }
#pragma GCC unroll 8
    for (const char*& p : at.base) {
      p += Step::kWords * word;
      asm("" : "+r"(p));
    }
    b += kPanel;
  }
  finish_tile<kRows>(s, sums);
}

// Multiplies the rows of a block with one panel, as long as kRows of them are
// left. The first tile of a panel prefetches the next panel, which begins
// `ahead` words further on: without that the next panel's first tile would wait
// for memory where B is larger than the caches.
template <class Step, int kRows, bool kByWord>
HEARTH_INLINE void tiles_down(
    ABlock& a,
    long& height,
    long steps,
    const Word* b,
    long& ahead,
    Sink& s
) {
  for (; height >= kRows; height -= kRows) {
    tile<Step, kRows, kByWord>(a, steps, b, ahead, s);
    ahead = 0;
    a.words += kRows == kTileRows ? a.tile_bytes : kRows * a.row_bytes;
    s.i += kRows;
    s.partial = static_cast<float*>(s.partial) + kRows * s.partial_stride;
  }
}

template <class Step, bool kByWord>
void multiply_panel(
    ABlock a,
    long height,
    long steps,
    const Word* b,
    long ahead,
    Sink s
) {
  tiles_down<Step, kTileRows, kByWord>(a, height, steps, b, ahead, s);
  if constexpr (kTileRows > 8) {
    tiles_down<Step, 8, kByWord>(a, height, steps, b, ahead, s);
  }
  if constexpr (kTileRows > 4) {
    tiles_down<Step, 4, kByWord>(a, height, steps, b, ahead, s);
    tiles_down<Step, 2, kByWord>(a, height, steps, b, ahead, s);
  }
  tiles_down<Step, 1, kByWord>(a, height, steps, b, ahead, s);
}

constexpr long kBlockRows = 96;
constexpr long kBlockWords = 1024;

// Rows are far apart and a few bytes of each are read, which no hardware
// prefetcher predicts; so rows are prefetched this many ahead.
constexpr long kAhead = 16;
HEARTH_INLINE void prefetch_row(const void* p, long bytes) {
  for (long i = 0; i < bytes; i += 64) {
    __builtin_prefetch(static_cast<const char*>(p) + i);
  }
}

// Fills a block by word: put_row(w, out) writes word w of each of the rows.
template <class PutRow>
HEARTH_INLINE ABlock
copy_words(long height, long words, void* room, PutRow put_row) {
  alignas(64) Word row[kBlockRows + kSpareWords] = {};
  for (long w = 0; w < words; ++w) {
    put_row(w, row);
    char* out = static_cast<char*>(room) + w * kWordBytes;
    for (long r = 0; r < height; r += kTileRows) {
      __builtin_memcpy(out, row + r, kWordBytes);
      out += words * kWordBytes;
    }
  }
  return {static_cast<const char*>(room), 4, words * kWordBytes};
}

// Copies `depth` elements of `height` rows as words; Put writes n of them.
template <class T, class Put>
HEARTH_INLINE ABlock copy_rows(
    const T* a,
    long stride,
    long height,
    long words,
    void* room,
    Put put
) {
  const long row = words + kSpareWords;
  auto* out = static_cast<Word*>(room);
  for (long r = 0; r < height; ++r) put(a + r * stride, out + r * row);
  return {static_cast<const char*>(room), row * 4, kTileRows * row * 4};
}

template <class Step>
struct VectorCore {
  static constexpr long kRows = kBlockRows;
  static constexpr long kDepth = kBlockWords * Step::kElements / Step::kWords;
  static constexpr long kRoom =
      (kBlockWords + kSpareWords) * (kBlockRows + kSpareWords) * 4;

  ABlock block_of_a(
      const GemmArgs& g,
      long i,
      long height,
      long k,
      long depth,
      void* room
  ) const;

  void multiply(
      const ABlock& a,
      long height,
      long k,
      long depth,
      const Sink& s
  ) const {
    const bool f32 = Step::kElements == 1;
    const long words = f32 ? s.g->k : round_up(s.g->k, kPairDepth) / 2;
    const Word* b = static_cast<const Word*>(s.g->packed) + s.j * words +
                    k / Step::kElements * kPanel;
    const long steps = (depth + Step::kElements - 1) / Step::kElements;
    if (a.row_bytes == 4)
      multiply_panel<Step, true>(a, height, steps, b, words * kPanel, s);
    else
      multiply_panel<Step, false>(a, height, steps, b, words * kPanel, s);
  }
};

template <>
inline ABlock VectorCore<Fp32Step>::block_of_a(
    const GemmArgs& g,
    long i,
    long height,
    long k,
    long depth,
    void* room
) const {
  const auto* a = static_cast<const float*>(g.a);
  if (g.a_transposed) {
    return copy_words(height, depth, room, [&](long w, Word* row) {
      const float* in = a + (k + w) * g.a_stride + i;
      prefetch_row(in + kAhead * g.a_stride, height * 4);
      each_vector(0, height, [&](long r, auto n) {
        store(reinterpret_cast<float*>(row) + r, load(in + r, n), n);
      });
    });
  }
  const float* in = a + i * g.a_stride + k;
  if (g.a_stride % 1024 != 0 && g.a_stride != 1) {
    const long row = g.a_stride * 4;
    return {reinterpret_cast<const char*>(in), row, kTileRows * row};
  }
  return copy_rows(in, g.a_stride, height, depth, room, [&](auto* p, Word* q) {
    each_vector(0, depth, [&](long w, auto n) {
      store(reinterpret_cast<float*>(q) + w, load(p + w, n), n);
    });
  });
}

// fp32 words from bf16, with a zero after an odd end.
template <>
inline ABlock VectorCore<WidenedStep>::block_of_a(
    const GemmArgs& g,
    long i,
    long height,
    long k,
    long depth,
    void* room
) const {
  const auto* a = static_cast<const Bf16*>(g.a);
  if (g.a_transposed) {
    const long words = round_up(depth, 2);
    return copy_words(height, words, room, [&](long w, Word* row) {
      const Bf16* in = a + (k + w) * g.a_stride + i;
      prefetch_row(in + kAhead * g.a_stride, height * 2);
      each_vector(0, height, [&](long r, auto n) {
        const F32 x = w < depth ? load(in + r, n) : zero();
        store(reinterpret_cast<float*>(row) + r, x, n);
      });
    });
  }
  const Bf16* in = a + i * g.a_stride + k;
  return copy_rows(in, g.a_stride, height, depth, room, [&](auto* p, Word* q) {
    auto* wide = reinterpret_cast<float*>(q);
    each_vector(0, depth, [&](long w, auto n) {
      store(wide + w, load(p + w, n), n);
    });
    wide[depth] = 0.0f;
  });
}

#if defined(__AVX512BF16__)
template <>
inline ABlock VectorCore<PairStep>::block_of_a(
    const GemmArgs& g,
    long i,
    long height,
    long k,
    long depth,
    void* room
) const {
  const auto* a = static_cast<const Bf16*>(g.a);
  const long words = (depth + 1) / 2;
  if (g.a_transposed) {
    return copy_words(height, words, room, [&](long w, Word* row) {
      const Bf16* low = a + (k + 2 * w) * g.a_stride + i;
      prefetch_row(low + kAhead * g.a_stride, height * 2);
      prefetch_row(low + (kAhead + 1) * g.a_stride, height * 2);
      const Bf16* high = 2 * w + 1 < depth ? low + g.a_stride : nullptr;
      interleave(low, high, height, row);
    });
  }
  const Bf16* in = a + i * g.a_stride + k;
  if (depth % 2 == 0 && g.a_stride % 2048 != 0 && g.a_stride != 2) {
    const long row = g.a_stride * 2;
    return {reinterpret_cast<const char*>(in), row, kTileRows * row};
  }
  return copy_rows(in, g.a_stride, height, words, room, [&](auto* p, Word* q) {
    auto* halves = reinterpret_cast<Bf16*>(q);
    for (long w = 0; w < depth; w += 32) {
      const long n = smaller(32, depth - w);
      const auto mask = static_cast<__mmask32>(_bzhi_u32(~0u, unsigned(n)));
      _mm512_storeu_si512(halves + w, _mm512_maskz_loadu_epi16(mask, p + w));
    }
  });
}
#endif

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
