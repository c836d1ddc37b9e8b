#pragma once
// int8 x int8 -> int32 on vector registers. B holds four int8 a word. x86's
// VNNI multiplies unsigned by signed bytes, so A goes in with 128 added and 128
// times the sum of B's column is taken off; that sum is a panel's last row.
#include "hearth/kernels/gemm_vector_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

#if defined(__AVX512VNNI__)
constexpr int kQuadWords = 1;
constexpr bool kOffset = true;
inline void put_quad(Word quad, Word* out) {
  *out = quad ^ 0x80808080u;
}
HEARTH_INLINE I32 dot_quads(I32 sum, const char* a, long, I32 b) {
  const LooseWord* p = reinterpret_cast<const LooseWord*>(a);
  const __m512i x = _mm512_set1_epi32(static_cast<int>(*p));
  return {_mm512_dpbusd_epi32(sum.v, x, b.v)};
}
#elif defined(__AVX2__)
// Even and odd bytes apart, as 16-bit pairs whose products are added in twos.
constexpr int kQuadWords = 2;
constexpr bool kOffset = false;
inline Word wide_pair(Word low, Word high) {
  const int x = static_cast<signed char>(low);
  const int y = static_cast<signed char>(high);
  return (static_cast<Word>(x) & 0xffffu) | static_cast<Word>(y) << 16;
}
inline void put_quad(Word quad, Word* out) {
  out[0] = wide_pair(quad, quad >> 16);
  out[1] = wide_pair(quad >> 8, quad >> 24);
}
HEARTH_INLINE I32 dot_quads(I32 sum, const char* a, long word, I32 b) {
  const LooseWord* p = reinterpret_cast<const LooseWord*>(a);
  const LooseWord* q = reinterpret_cast<const LooseWord*>(a + word);
#if defined(__AVX512F__)
  const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(b.v, 8), 8);
  const __m512i odd = _mm512_srai_epi16(b.v, 8);
  const __m512i x = _mm512_set1_epi32(static_cast<int>(*p));
  const __m512i y = _mm512_set1_epi32(static_cast<int>(*q));
  const __m512i both =
      _mm512_add_epi32(_mm512_madd_epi16(even, x), _mm512_madd_epi16(odd, y));
  return {_mm512_add_epi32(sum.v, both)};
#else
  const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(b.v, 8), 8);
  const __m256i odd = _mm256_srai_epi16(b.v, 8);
  const __m256i x = _mm256_set1_epi32(static_cast<int>(*p));
  const __m256i y = _mm256_set1_epi32(static_cast<int>(*q));
  const __m256i both =
      _mm256_add_epi32(_mm256_madd_epi16(even, x), _mm256_madd_epi16(odd, y));
  return {_mm256_add_epi32(sum.v, both)};
#endif
}
#else
constexpr int kQuadWords = 1;
constexpr bool kOffset = false;
inline void put_quad(Word quad, Word* out) {
  *out = quad;
}
HEARTH_INLINE I32 dot_quads(I32 sum, const char* a, long, I32 b) {
  const Word quad = *reinterpret_cast<const LooseWord*>(a);
#if HEARTH_ISA_IS(neon)
  const int8x16_t x = vreinterpretq_s8_u32(vdupq_n_u32(quad));
  const int8x16_t y = vreinterpretq_s8_u32(b.v);
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)));
  const int32x4_t high = vpaddlq_s16(vmull_high_s8(x, y));
  const int32x4_t both = vpaddq_s32(low, high);
  return {vaddq_u32(sum.v, vreinterpretq_u32_s32(both))};
#else
  Word total = sum.v;
  for (int byte = 0; byte < 32; byte += 8) {
    const int x = static_cast<signed char>(quad >> byte);
    const int y = static_cast<signed char>(b.v >> byte);
    total += static_cast<Word>(x * y);
  }
  return {total};
#endif
}
#endif

HEARTH_INLINE I32 load_words(const void* p) {
  return bits(load(static_cast<const float*>(p)));
}
HEARTH_INLINE void store_words(void* p, I32 x) {
  store(static_cast<float*>(p), from_bits(x));
}

template <int kRows>
__attribute__((noinline)) void tile_i8(
    ABlock a,
    long steps,
    const Word* b,
    const Word* column_sums,
    const Sink& s
) {
  I32 sums[kRows][kPanelVectors];
  auto* partial = static_cast<Word*>(s.partial);
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kPanelVectors; ++v) {
      sums[r][v] = splat_int(0);
      if (!s.first) {
        sums[r][v] = load_words(partial + r * s.partial_stride + v * kLanes);
      } else if (kOffset) {
        sums[r][v] = sums[r][v] - (load_words(column_sums + v * kLanes) << 7);
      }
    }
  }
  for (long k = 0; k < steps; ++k, b += kPanel) {
    I32 column[kPanelVectors];
    for (int v = 0; v < kPanelVectors; ++v) {
      column[v] = load_words(b + v * kLanes);
    }
    const char* at = a.words + k * kQuadWords * 4;
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
      for (int v = 0; v < kPanelVectors; ++v) {
        sums[r][v] = dot_quads(sums[r][v], at + r * a.row_bytes, 4, column[v]);
      }
    }
  }
  alignas(64) LooseInt rest[kRows * kPanel];
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kPanelVectors; ++v) {
      void* p = s.last ? static_cast<void*>(rest + r * kPanel + v * kLanes)
                       : partial + r * s.partial_stride + v * kLanes;
      store_words(p, sums[r][v]);
    }
  }
  if (s.last) finish_rows(s, rest, kPanel, kRows);
}

struct Int8Core {
  static constexpr long kRows = kBlockRows;
  static constexpr long kDepth = kBlockWords * 4 / kQuadWords;
  static constexpr long kRoom = (kBlockWords + kSpareWords) * kBlockRows * 4;

  // Whole quads are read at once, the last one byte by byte.
  ABlock block_of_a(
      const GemmArgs& g,
      long i,
      long height,
      long k,
      long depth,
      void* room
  ) const {
    const auto* a = static_cast<const signed char*>(g.a) + i * g.a_stride + k;
    const long words = (depth + 3) / 4 * kQuadWords;
    return copy_rows(
        a, g.a_stride, height, words, room, [&](const signed char* p, Word* q) {
          long w = 0;
          for (; w + 4 <= depth; w += 4, q += kQuadWords) {
            put_quad(*reinterpret_cast<const LooseWord*>(p + w), q);
          }
          Word quad = 0;
          for (long c = w; c < depth; ++c) {
            quad |= (static_cast<Word>(p[c]) & 0xffu) << (8 * (c - w));
          }
          if (w < depth) put_quad(quad, q);
        }
    );
  }

  void multiply(ABlock a, long height, long k, long depth, Sink s) const {
    const long words = round_up(s.g->k, kQuadDepth) / 4;
    const Word* panel =
        static_cast<const Word*>(s.g->packed) + s.j * (words + 1);
    const Word* sums = panel + words * kPanel;
    const Word* b = panel + k / 4 * kPanel;
    const long steps = (depth + 3) / 4;
    for (long done = 0; done < height;) {
      const bool whole = height - done >= kTileRows;
      if (whole)
        tile_i8<kTileRows>(a, steps, b, sums, s);
      else
        tile_i8<1>(a, steps, b, sums, s);
      const long rows = whole ? kTileRows : 1;
      done += rows;
      a.words += rows * a.row_bytes;
      s.i += rows;
      s.partial = static_cast<Word*>(s.partial) + rows * s.partial_stride;
    }
  }
};

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
