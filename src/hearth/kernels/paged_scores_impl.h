#pragma once
// Scores of a few queries against the keys of a page. A Scorer is made once for
// the queries and then asked page by page.
#include "hearth/kernels/paged_words_impl.h"
#include "hearth/kernels/simd/math_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kBlock = 4;  // query rows at a time

// Which row is where.
struct RowsAt {
  const float* q[kBlock];
  long position[kBlock];
};

HEARTH_INLINE float sum_of(const float* x, long n) {
  F32 sum = zero();
  each_vector(0, n, [&](long i, auto lanes) { sum += load(x + i, lanes); });
  return reduce_add(sum);
}

HEARTH_INLINE F32 capped(F32 score, float cap) {
  return cap > 0 ? splat(cap) * tanh(score * splat(1 / cap)) : score;
}

// Prefetches into the second-level cache, to which more requests may be under
// way than to the first. Pages lie anywhere, so no hardware prefetcher predicts
// the next one. While a page's keys are read its values are prefetched, and
// while the values are read, the keys of the next chunk: both take as many
// bytes, so that memory is equally busy in either half.
HEARTH_INLINE void prefetch(const std::byte* p, long bytes) {
  for (long i = 0; i < bytes; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// In float32, two registers of tokens at a time.
template <class Format, int kRows>
class WideScorer {
 public:
  WideScorer(const PagedAttentionArgs& a, const RowsAt& rows)
      : a_(a), rows_(rows) {
    if constexpr (kE == 4) {
      for (int r = 0; r < kRows; ++r) {
        offset_[r] = Format::kOffset * sum_of(rows.q[r], a.kv.dim);
      }
    }
  }

  // Rows of scores lie kPagedChunk apart.
  HEARTH_INLINE void page(const Page& page, float* out) const {
    const long words = a_.kv.dim / kE, tokens = a_.kv.page_tokens;
    const std::ptrdiff_t values = page.values - page.keys;
    for (long t = 0; t < tokens; t += 2 * kLanes) {
      F32 sums[kRows][2];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = zero();
      const std::byte* p = page.keys + t * 4;
      const bool both = t + kLanes < tokens;
      const long second = both ? kLanes * 4 : 0;
      for (long w = 0; w < words; ++w, p += tokens * 4) {
        const I32 left = load_words(p), right = load_words(p + second);
        prefetch(p + values, 2L * kLanes * 4);
#pragma GCC unroll 4
        for (int e = 0; e < kE; ++e) {
          const F32 x = Format::element(left, e), y = Format::element(right, e);
#pragma GCC unroll 4
          for (int r = 0; r < kRows; ++r) {
            const F32 q = splat(rows_.q[r][w * kE + e]);
            sums[r][0] = fma(q, x, sums[r][0]);
            sums[r][1] = fma(q, y, sums[r][1]);
          }
        }
      }
      for (int half = 0; half < (both ? 2 : 1); ++half) {
        const long at = t + half * kLanes;
        for (int r = 0; r < kRows; ++r) {
          F32 s = sums[r][half];
          if constexpr (kE == 4) {
            s = (s - splat(offset_[r])) * load(page.key_scales + at);
          }
          store(out + r * kPagedChunk + at, capped(s, a_.softcap));
        }
      }
    }
  }

 private:
  static constexpr int kE = Format::kElements;
  const PagedAttentionArgs& a_;
  const RowsAt& rows_;
  float offset_[kRows];
};

template <class Format, int kRows>
struct ScorerOf {
  using Type = WideScorer<Format, kRows>;
};

#if defined(__AVX512VNNI__)
// Keys of bytes are multiplied as bytes. A query is written as two digits to
// the base of 128 in units of 1/16,256 of its largest element, so what it loses
// is far below what the keys have lost, and its products are exact.
template <int kRows>
class ByteScorer {
 public:
  ByteScorer(const PagedAttentionArgs& a, const RowsAt& rows) : a_(a) {
    for (int r = 0; r < kRows; ++r) {
      write_digits(rows.q[r], r);
    }
  }

  HEARTH_INLINE void page(const Page& page, float* out) const {
    const long words = a_.kv.dim / 4, tokens = a_.kv.page_tokens;
    const std::ptrdiff_t values = page.values - page.keys;
    for (long t = 0; t < tokens; t += 2 * kLanes) {
      __m512i high[kRows][2], low[kRows][2];
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        high[r][0] = high[r][1] = _mm512_set1_epi32(high_start_[r]);
        low[r][0] = low[r][1] = _mm512_set1_epi32(low_start_[r]);
      }
      const std::byte* p = page.keys + t * 4;
      const bool both = t + kLanes < tokens;
      const long second = both ? kLanes * 4 : 0;
      for (long w = 0; w < words; ++w, p += tokens * 4) {
        const __m512i left = _mm512_loadu_si512(p);
        const __m512i right = _mm512_loadu_si512(p + second);
        prefetch(p + values, 2L * kLanes * 4);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const __m512i h = four(high_[r] + w * 4), l = four(low_[r] + w * 4);
          high[r][0] = _mm512_dpbusd_epi32(high[r][0], left, h);
          high[r][1] = _mm512_dpbusd_epi32(high[r][1], right, h);
          low[r][0] = _mm512_dpbusd_epi32(low[r][0], left, l);
          low[r][1] = _mm512_dpbusd_epi32(low[r][1], right, l);
        }
      }
      for (int half = 0; half < (both ? 2 : 1); ++half) {
        const F32 scales = load(page.key_scales + t + half * kLanes);
        for (int r = 0; r < kRows; ++r) {
          const __m512i sum = _mm512_add_epi32(
              _mm512_slli_epi32(high[r][half], kDigitBits), low[r][half]
          );
          const F32 s = F32{_mm512_cvtepi32_ps(sum)} * splat(unit_[r]) * scales;
          store(
              out + r * kPagedChunk + t + half * kLanes, capped(s, a_.softcap)
          );
        }
      }
    }
  }

 private:
  static constexpr int kDigitBits = 7;
  static constexpr float kMost = 127 << kDigitBits;
  const PagedAttentionArgs& a_;
  alignas(64) std::int8_t high_[kRows][kPagedMaxDim];
  alignas(64) std::int8_t low_[kRows][kPagedMaxDim];
  float unit_[kRows];
  // What the codes' offset adds to each sum, negated.
  std::int32_t high_start_[kRows], low_start_[kRows];

  static HEARTH_INLINE __m512i four(const std::int8_t* digits) {
    std::int32_t word;
    __builtin_memcpy(&word, digits, 4);
    return _mm512_set1_epi32(word);
  }
  // A query that is not finite has no digits: every score of it is NaN.
  void write_digits(const float* q, int r) {
    const long dim = a_.kv.dim;
    F32 most = zero();
    each_vector(0, dim, [&](long i, auto lanes) {
      most = max(abs(load(q + i, lanes)), most);
    });
    const float top = reduce_max(most);
    const bool finite = __builtin_isfinite(sum_of(q, dim)) != 0;
    constexpr float kLeast = 1e-30f;  // below it the quotient overflows
    const float steps = finite && top > kLeast ? kMost / top : 0.0f;
    unit_[r] = !finite ? __builtin_nanf("") : top / kMost;
    __m512i highs = _mm512_setzero_si512(), lows = highs;
    for (long i = 0; i < dim; i += kLanes) {
      const auto n = static_cast<int>(dim - i < kLanes ? dim - i : kLanes);
      const F32 x = finite ? load(q + i, n) * splat(steps) : zero();
      const __m512i whole = _mm512_cvtps_epi32(x.v);
      const __m512i h = _mm512_srai_epi32(
          _mm512_add_epi32(whole, _mm512_set1_epi32(1 << (kDigitBits - 1))),
          kDigitBits
      );
      const __m512i l =
          _mm512_sub_epi32(whole, _mm512_slli_epi32(h, kDigitBits));
      highs = _mm512_add_epi32(highs, h), lows = _mm512_add_epi32(lows, l);
      const auto put = [&](std::int8_t* to, __m512i digits) {
        _mm_store_si128(
            reinterpret_cast<__m128i*>(to + i), _mm512_cvtepi32_epi8(digits)
        );
      };
      put(high_[r], h), put(low_[r], l);
    }
    constexpr int kOffset = static_cast<int>(WordI8::kOffset);
    high_start_[r] = -kOffset * _mm512_reduce_add_epi32(highs);
    low_start_[r] = -kOffset * _mm512_reduce_add_epi32(lows);
  }
};

template <int kRows>
struct ScorerOf<WordI8, kRows> {
  using Type = ByteScorer<kRows>;
};
#endif

template <class Format, int kRows>
using Scorer = typename ScorerOf<Format, kRows>::Type;

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
