#pragma once
// Packing of B. A panel holds kPanel columns: for each word of depth (one fp32,
// a pair of bf16, four int8) one word a column. Pairs are what vdpbf16ps and,
// sixteen rows at a time, an AMX tile read; the same order serves every table.
#include "hearth/kernels/gemm_range_impl.h"
#include "hearth/kernels/simd/transpose_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr long kPairDepth = 32;  // an AMX tile's; zeros fill the last
constexpr long kQuadDepth = 64;

inline Word bf16_bits(const Bf16* p) {
  return p->bits;
}
inline Word bf16_bits(const float* p) {
  const Word u = __builtin_bit_cast(Word, *p);
  const bool nan = (u & 0x7fffffffu) > 0x7f800000u;
  return (nan ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}

// out[c] = (low[c], high[c]) for `columns` of them; no high: zeros.
template <class T>
void interleave(const T* low, const T* high, long columns, Word* out) {
  long c = 0;
#if defined(__AVX512BW__)
  if constexpr (sizeof(T) == 2) {
    for (; high && c + 32 <= columns; c += 32) {
      interleave_words(
          _mm512_loadu_si512(low + c), _mm512_loadu_si512(high + c), out + c,
          out + c + 16
      );
    }
  }
#endif
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    for (; high && c + 16 <= columns; c += 16) {
      const __m512i first = _mm512_cvtepu16_epi32(narrow_bf16(load(low + c)));
      const __m512i second = _mm512_cvtepu16_epi32(narrow_bf16(load(high + c)));
      _mm512_storeu_si512(
          out + c, _mm512_or_si512(first, _mm512_slli_epi32(second, 16))
      );
    }
  }
#endif
  if (high) {
    for (; c < columns; ++c) {
      out[c] = bf16_bits(low + c) | bf16_bits(high + c) << 16;
    }
  }
  for (; c < columns; ++c) out[c] = bf16_bits(low + c);
}

inline std::size_t words_bytes(long n, long words) {
  return static_cast<std::size_t>(round_up(n, kPanel)) *
         static_cast<std::size_t>(words) * sizeof(Word);
}
std::size_t packed_bytes_bf16(long n, long k) noexcept {
  return words_bytes(n, round_up(k, kPairDepth) / 2);
}
std::size_t packed_bytes_f32(long n, long k) noexcept {
  return words_bytes(n, k);
}
// One more row: the sum of each column, see gemm_int8_impl.h.
std::size_t packed_bytes_i8(long n, long k) noexcept {
  return words_bytes(n, round_up(k, kQuadDepth) / 4 + 1);
}

inline void zero_words(Word* p, long n) {
  for (long i = 0; i < n; ++i) p[i] = 0;
}

// Packs rows of depth of a row-major source, a few at a time so that the
// first-level cache holds them, into one panel after the other. Panels are
// often a power of two apart: packing a single row would write to one set of a
// cache.
template <class T>
void pack_rows_bf16(const GemmPack& g, GemmRange columns, GemmRange depth) {
  const T* source = static_cast<const T*>(g.source);
  const long words = round_up(g.k, kPairDepth) / 2;
  const long end = depth.end < g.k ? depth.end : round_up(g.k, kPairDepth);
  for (long from = depth.begin; from < end; from += kPairDepth) {
    const long to = smaller(end, from + kPairDepth);
    for (long j = columns.begin; j < columns.end; j += kPanel) {
      const long width = smaller(kPanel, g.n - j);
      for (long k = from; k < to; k += 2) {
        Word* out = static_cast<Word*>(g.packed) + j * words + k / 2 * kPanel;
        if (width < kPanel || k >= g.k) zero_words(out, kPanel);
        if (k >= g.k) continue;
        const T* low = source + k * g.stride + j;
        interleave(low, k + 1 < g.k ? low + g.stride : nullptr, width, out);
      }
    }
  }
}

#if defined(__AVX512F__)
// Pairs of 32 numbers of depth of 16 columns of B, a word a column.
HEARTH_INLINE void pack_column_words(
    const Bf16* source,
    long stride,
    Word* out
) {
  transpose_words(source, stride * 2, out, kPanel * 4);
}
HEARTH_INLINE void pack_column_words(
    const float* source,
    long stride,
    Word* out
) {
  alignas(64) Word words[16 * 16];
  for (int c = 0; c < 16; ++c) {
    auto* to = reinterpret_cast<Bf16*>(words + 16 * c);
    store(to, load(source + c * stride));
    store(to + 16, load(source + c * stride + 16));
  }
  transpose_words(words, 64, out, kPanel * 4);
}
#endif

// One panel of a source whose rows are columns of B, `width` of them real.
template <class T>
void pack_columns_bf16(
    const GemmPack& g,
    long j,
    long width,
    GemmRange depth,
    Word* panel
) {
  const T* source = static_cast<const T*>(g.source) + j * g.stride;
  const long end = depth.end < g.k ? depth.end : round_up(g.k, kPairDepth);
  for (long k = depth.begin; k < end; k += 2) {
    Word* out = panel + k / 2 * kPanel;
#if defined(__AVX512F__)
    if (width == kPanel && k % 32 == 0 && k + 32 <= depth.end) {
      for (int c = 0; c < kPanel; c += 16) {
        pack_column_words(source + c * g.stride + k, g.stride, out + c);
      }
      k += 30;
      continue;
    }
#endif
    for (long c = 0; c < kPanel; ++c) {
      const T* p = source + c * g.stride + k;
      const bool low = c < width && k < g.k, high = low && k + 1 < g.k;
      out[c] = (low ? bf16_bits(p) : 0) | (high ? bf16_bits(p + 1) << 16 : 0);
    }
  }
}

template <class T>
void pack_bf16_from(const GemmPack& g, GemmRange columns, GemmRange depth) {
  if (!g.by_column) return pack_rows_bf16<T>(g, columns, depth);
  const long words = round_up(g.k, kPairDepth) / 2;
  for (long j = columns.begin; j < columns.end; j += kPanel) {
    Word* panel = static_cast<Word*>(g.packed) + j * words;
    pack_columns_bf16<T>(g, j, smaller(kPanel, g.n - j), depth, panel);
  }
}

void pack_bf16(const GemmPack& g, GemmRange columns, GemmRange depth) noexcept {
  if (g.type == GemmScalar::bf16)
    pack_bf16_from<Bf16>(g, columns, depth);
  else
    pack_bf16_from<float>(g, columns, depth);
}

void pack_rows_f32(const GemmPack& g, GemmRange columns, GemmRange depth) {
  const auto* source = static_cast<const float*>(g.source);
  for (long k = depth.begin; k < depth.end; ++k) {
    for (long j = columns.begin; j < columns.end; j += kPanel) {
      float* out = static_cast<float*>(g.packed) + j * g.k + k * kPanel;
      const float* in = source + k * g.stride + j;
      const long width = smaller(kPanel, g.n - j);
      for (long c = 0; c < kPanel; ++c) out[c] = c < width ? in[c] : 0.0f;
    }
  }
}

void pack_f32(const GemmPack& g, GemmRange columns, GemmRange depth) noexcept {
  if (!g.by_column) return pack_rows_f32(g, columns, depth);
  const auto* source = static_cast<const float*>(g.source);
  for (long j = columns.begin; j < columns.end; j += kPanel) {
    float* panel = static_cast<float*>(g.packed) + j * g.k;
    const long width = smaller(kPanel, g.n - j);
    for (long k = depth.begin; k < depth.end; ++k) {
      float* out = panel + k * kPanel;
#if defined(__AVX512F__)
      if (width == kPanel && k + 16 <= depth.end) {
        for (int c = 0; c < kPanel; c += 16) {
          const float* in = source + (j + c) * g.stride + k;
          transpose_words(in, g.stride * 4, out + c, kPanel * 4);
        }
        k += 15;
        continue;
      }
#endif
      const float* in = source + j * g.stride + k;
      for (long c = 0; c < kPanel; ++c) {
        out[c] = c < width ? in[c * g.stride] : 0.0f;
      }
    }
  }
}

void pack_i8(const GemmPack& g, GemmRange columns, GemmRange) noexcept {
  const auto* source = static_cast<const signed char*>(g.source);
  const long words = round_up(g.k, kQuadDepth) / 4;
  const long row = g.by_column ? 1 : g.stride;
  const long column = g.by_column ? g.stride : 1;
  for (long j = columns.begin; j < columns.end; j += kPanel) {
    Word* panel = static_cast<Word*>(g.packed) + j * (words + 1);
    for (long c = 0; c < kPanel; ++c) {
      Word sum = 0;
      for (long w = 0; w < words; ++w) {
        Word quad = 0;
        for (long k = 4 * w; k < smaller(4 * w + 4, g.k); ++k) {
          const int x = j + c < g.n ? source[(j + c) * column + k * row] : 0;
          sum += static_cast<Word>(x);
          quad |= (static_cast<Word>(x) & 0xffu) << (8 * (k & 3));
        }
        panel[w * kPanel + c] = quad;
      }
      panel[words * kPanel + c] = sum;
    }
  }
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
