#include "hearth/kernels/paged_attention.h"
#include "hearth/kernels/paged_store_impl.h"
#include "hearth/kernels/paged_words_impl.h"
#include "hearth/kernels/simd/math_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

constexpr int kBlock = 4;  // query rows at a time

// Which row is where.
struct RowsAt {
  const float* q[kBlock];
  long position[kBlock];
  float sum[kBlock];  // of a query's elements, where codes are offset
};

// Scores of kRows queries against the tokens of one page, kLanes of them twice
// over.
template <class Format, int kRows>
HEARTH_INLINE void page_scores(
    const PagedAttentionArgs& a,
    const RowsAt& rows,
    const Page& page,
    const std::byte* next,
    float* out,
    long stride
) {
  constexpr int kE = Format::kElements;
  const long words = a.kv.dim / kE, tokens = a.kv.page_tokens;
  // Values and keys of this page and the next take as many bytes as these.
  const std::ptrdiff_t values = page.values - page.keys;
  const std::ptrdiff_t ahead = next == nullptr ? 0 : next - page.keys;
  for (long t = 0; t < tokens; t += 2 * kLanes) {
    F32 sums[kRows][2];
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = zero();
    const std::byte* p = page.keys + t * 4;
    const bool both = t + kLanes < tokens;
    const long second = both ? kLanes * 4 : 0;
    for (long w = 0; w < words; ++w, p += tokens * 4) {
      const I32 left = load_words(p), right = load_words(p + second);
      // Pages lie anywhere: no processor guesses which comes next.
      for (long i = 0; i < 2 * kLanes * 4; i += 64) {
        __builtin_prefetch(p + values + i);
        __builtin_prefetch(p + ahead + i);
      }
#pragma GCC unroll 4
      for (int e = 0; e < kE; ++e) {
        const F32 x = Format::element(left, e), y = Format::element(right, e);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          const F32 q = splat(rows.q[r][w * kE + e]);
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
          s = (s - splat(Format::kOffset * rows.sum[r])) *
              load(page.key_scales + at);
        }
        if (a.softcap > 0) {
          s = splat(a.softcap) * tanh(s * splat(1 / a.softcap));
        }
        store(out + r * stride + at, s);
      }
    }
  }
}

// Scores become weights: hides what a query does not see, takes the maximum
// and the sum. Keys of the row are begin .. begin + count.
HEARTH_INLINE void soften(
    const PagedAttentionArgs& a,
    long position,
    long begin,
    long count,
    float* scores,
    float* maximum,
    float* sum
) {
  long to = position + 1 - begin;
  if (to > count) to = count;
  long from = a.window > 0 ? position + 1 - a.window - begin : 0;
  if (from < 0) from = 0;
  if (to <= from) {
    for (long i = 0; i < count; ++i) scores[i] = 0;
    *maximum = -__builtin_inff();
    *sum = 0;
    return;
  }
  F32 most = splat(-__builtin_inff());
  float rest = -__builtin_inff();
  each_vector(from, to, [&](long i, auto lanes) {
    const F32 s = load(scores + i, lanes);
    if constexpr (sizeof(lanes) == sizeof(Part) && kLanes > 1) {
      alignas(64) float few[kLanes];
      store(few, s);
      for (long l = 0; l < to - i; ++l) rest = few[l] > rest ? few[l] : rest;
    } else {
      most = max(s, most);
    }
  });
  const float m = reduce_max(most);
  *maximum = m > rest ? m : rest;
  const F32 top = splat(*maximum);
  F32 total = zero();
  for (long i = 0; i < from; ++i) scores[i] = 0;
  each_vector(from, to, [&](long i, auto lanes) {
    const F32 e = only(exp(load(scores + i, lanes) - top), lanes);
    store(scores + i, e, lanes);
    total += e;
  });
  for (long i = to; i < count; ++i) scores[i] = 0;
  *sum = reduce_add(total);
}

// Adds tokens' values times their weights; `words` words of a value from word
// `first` on, at most kWide registers of them.
template <class Format, int kRows, int kWide>
HEARTH_INLINE void page_values(
    const PagedAttentionArgs& a,
    const Page& page,
    const float* weights,
    long stride,
    long tokens,
    long first,
    float* out,
    long out_stride,
    bool opens
) {
  constexpr int kE = Format::kElements;
  F32 sums[kRows][kWide * kE];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kWide * kE; ++v) {
      sums[r][v] = opens ? zero() : load(out + r * out_stride + v * kLanes);
    }
  }
  const long row = a.kv.dim * 4 / kE;
  const std::byte* p = page.values + first * 4;
  for (long t = 0; t < tokens; ++t, p += row) {
    F32 x[kWide * kE];
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) {
      const I32 w = load_words(p + v * kLanes * 4);
#pragma GCC unroll 4
      for (int e = 0; e < kE; ++e) x[v * kE + e] = Format::element(w, e);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      float weight = weights[r * stride + t];
      if constexpr (kE == 4) weight *= page.value_scales[t];
      const F32 s = splat(weight);
#pragma GCC unroll 16
      for (int v = 0; v < kWide * kE; ++v)
        sums[r][v] = fma(s, x[v], sums[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kWide * kE; ++v) {
      store(out + r * out_stride + v * kLanes, sums[r][v]);
    }
  }
}

// What is left of a value when whole registers are done: word by word.
template <class Format, int kRows>
void last_values(
    const PagedAttentionArgs& a,
    const Page& page,
    const float* weights,
    long stride,
    long tokens,
    long first,
    float* out,
    long out_stride,
    bool opens
) {
  constexpr int kE = Format::kElements;
  const long words = a.kv.dim / kE;
  for (int r = 0; r < kRows; ++r) {
    for (long w = first; w < words; ++w) {
      for (int e = 0; e < kE; ++e) {
        float sum = opens ? 0 : out[r * out_stride + (w - first) * kE + e];
        for (long t = 0; t < tokens; ++t) {
          const auto* p =
              reinterpret_cast<const AnyWord*>(page.values) + t * words + w;
          alignas(64) float lane[kLanes];
          store(lane, Format::element(splat_int(static_cast<int>(*p)), e));
          float weight = weights[r * stride + t];
          if constexpr (kE == 4) weight *= page.value_scales[t];
          sum = __builtin_fmaf(weight, lane[0], sum);
        }
        out[r * out_stride + (w - first) * kE + e] = sum;
      }
    }
  }
}

// Registers of sums that a block of rows has room for.
template <class Format>
constexpr int wide_of() {
  return Format::kElements == 4 ? 1 : Format::kElements == 2 ? 2 : 4;
}

// All values of a chunk. `sums` holds them in the order words are read in.
template <class Format, int kRows>
void chunk_values(
    const PagedAttentionArgs& a,
    const float* weights,
    long begin,
    long end,
    float* sums
) {
  constexpr int kE = Format::kElements, kWide = wide_of<Format>();
  const long words = a.kv.dim / kE, tokens = a.kv.page_tokens;
  for (long t = begin; t < end; t += tokens) {
    const Page page = page_at(a.kv, t / tokens);
    const long count = end - t < tokens ? end - t : tokens;
    const float* w = weights + (t - begin);
    long first = 0;
    for (; first + kWide * kLanes <= words; first += kWide * kLanes) {
      page_values<Format, kRows, kWide>(
          a, page, w, kPagedChunk, count, first, sums + first * kE, a.kv.dim,
          t == begin
      );
    }
    for (; first + kLanes <= words; first += kLanes) {
      page_values<Format, kRows, 1>(
          a, page, w, kPagedChunk, count, first, sums + first * kE, a.kv.dim,
          t == begin
      );
    }
    if (first < words) {
      last_values<Format, kRows>(
          a, page, w, kPagedChunk, count, first, sums + first * kE, a.kv.dim,
          t == begin
      );
    }
  }
}

// From the order of registers to that of a value's elements.
template <class Format>
HEARTH_INLINE void put_in_order(const float* sums, long dim, float* out) {
  constexpr int kE = Format::kElements;
  const long whole = dim / (kE * kLanes) * kE * kLanes;
  for (long at = 0; at < whole; at += kE * kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      for (int e = 0; e < kE; ++e) {
        out[at + l * kE + e] = sums[at + e * kLanes + l];
      }
    }
  }
  for (long i = whole; i < dim; ++i) out[i] = sums[i];
}

template <class Format, int kRows>
void attend_rows(
    const PagedAttentionArgs& a,
    const RowsAt& rows,
    long begin,
    long end,
    float* partial
) {
  constexpr long kMaxDim = 256;
  alignas(64) float scores[kRows * kPagedChunk];
  alignas(64) float sums[kRows * kMaxDim];
  const long dim = a.kv.dim, tokens = a.kv.page_tokens;
  for (long t = begin; t < end; t += tokens) {
    const long page = t / tokens;
    const std::byte* next =
        page + 1 < a.kv.page_count ? page_at(a.kv, page + 1).keys : nullptr;
    page_scores<Format, kRows>(
        a, rows, page_at(a.kv, page), next, scores + (t - begin), kPagedChunk
    );
  }
  for (int r = 0; r < kRows; ++r) {
    float* at = partial + r * (dim + 2);
    float* row = scores + r * kPagedChunk;
    soften(a, rows.position[r], begin, end - begin, row, at, at + 1);
  }
  chunk_values<Format, kRows>(a, scores, begin, end, sums);
  for (int r = 0; r < kRows; ++r) {
    float* out = partial + r * (dim + 2) + 2;
    const float* own = sums + r * dim;
    put_in_order<Format>(own, dim, out);
    if constexpr (Format::kElements == 4) {
      // The codes' offset, times what they were weighted with.
      float weight = 0;
      for (long t = begin; t < end; ++t) {
        const Page page = page_at(a.kv, t / tokens);
        weight +=
            scores[r * kPagedChunk + t - begin] * page.value_scales[t % tokens];
      }
      for (long i = 0; i < dim; ++i) out[i] -= Format::kOffset * weight;
    }
  }
}

template <class Format>
void attend_chunk(
    const PagedAttentionArgs& a,
    long begin,
    long end,
    float* partial
) {
  const long all = a.queries * a.group;
  for (long row = 0; row < all; row += kBlock) {
    const long n = all - row < kBlock ? all - row : kBlock;
    RowsAt rows;
    for (long r = 0; r < n; ++r) {
      const long i = (row + r) / a.group, g = (row + r) % a.group;
      rows.q[r] = a.q + i * a.q_stride + g * a.kv.dim;
      rows.position[r] = a.first + i;
      rows.sum[r] = 0;
      if constexpr (Format::kElements == 4) {
        F32 sum = zero();
        each_vector(0, a.kv.dim, [&](long k, auto lanes) {
          sum += load(rows.q[r] + k, lanes);
        });
        rows.sum[r] = reduce_add(sum);
      }
    }
    float* out = partial + row * (a.kv.dim + 2);
    if (n == 4) attend_rows<Format, 4>(a, rows, begin, end, out);
    if (n == 3) attend_rows<Format, 3>(a, rows, begin, end, out);
    if (n == 2) attend_rows<Format, 2>(a, rows, begin, end, out);
    if (n == 1) attend_rows<Format, 1>(a, rows, begin, end, out);
  }
}

void attend(
    const PagedAttentionArgs& a,
    long begin,
    long end,
    float* partial
) noexcept {
  with_format(a.kv.format, [&](auto format) {
    attend_chunk<decltype(format)>(a, begin, end, partial);
  });
}

void combine(
    const float* partial,
    long chunks,
    long stride,
    long dim,
    float* out
) noexcept {
  float top = -__builtin_inff();
  for (long c = 0; c < chunks; ++c) {
    const float m = partial[c * stride];
    top = m > top ? m : top;
  }
  float total = 0;
  for (long c = 0; c < chunks; ++c) {
    const float* p = partial + c * stride;
    if (p[1] == 0) continue;
    alignas(64) float lane[kLanes];
    store(lane, exp(splat(p[0] - top)));
    const F32 weight = splat(lane[0]);
    const bool first = total == 0;
    total = __builtin_fmaf(lane[0], p[1], total);
    each_vector(0, dim, [&](long i, auto lanes) {
      const F32 x = load(p + 2 + i, lanes) * weight;
      store(out + i, first ? x : x + load(out + i, lanes), lanes);
    });
  }
  const F32 scale = splat(total > 0 ? 1 / total : 0);
  each_vector(0, dim, [&](long i, auto lanes) {
    const F32 x = total > 0 || total != total ? load(out + i, lanes) : zero();
    store(out + i, total != total ? splat(total) : x * scale, lanes);
  });
}

}  // namespace

const PagedAttentionKernels paged_attention{
    .append = append,
    .attend = attend,
    .combine = combine,
    .gather = gather
};

}  // namespace hearth::kernels::HEARTH_ISA
