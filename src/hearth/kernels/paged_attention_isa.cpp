#include "hearth/kernels/paged_attention.h"
#include "hearth/kernels/paged_scores_impl.h"
#include "hearth/kernels/paged_store_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// Turns scores into weights of a softmax: masks the keys that a query does not
// see, and takes the maximum and the sum. The keys are begin .. begin + count.
HEARTH_INLINE void softmax_weights(
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

// Multiplies the weights of tokens [begin, end) by the scales of their values.
// Returns the sum of these products: codes are stored with an offset, which
// adds offset * sum to every element of the result and is subtracted in the
// end.
HEARTH_INLINE float weigh_by_scales(
    const PagedKv& kv,
    long begin,
    long end,
    float* weights
) {
  F32 sum = zero();
  for (long t = begin; t < end; t += kv.page_tokens) {
    const Page page = page_at(kv, t / kv.page_tokens);
    const long count = end - t < kv.page_tokens ? end - t : kv.page_tokens;
    float* w = weights + (t - begin);
    each_vector(0, count, [&](long i, auto lanes) {
      const F32 x = load(w + i, lanes) * load(page.value_scales + i, lanes);
      store(w + i, x, lanes);
      sum += x;
    });
  }
  return reduce_add(sum);
}

// Adds tokens' values times their weights; `words` words of a value from word
// `first` on, at most kWide registers of them. `later` will be read next, and
// has as many bytes as the values.
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
    bool opens,
    const std::byte* later
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
  const std::ptrdiff_t ahead = later - page.values;
  for (long t = 0; t < tokens; ++t, p += row) {
    prefetch(p + ahead, kWide * kLanes * 4);
    F32 x[kWide * kE];
#pragma GCC unroll 16
    for (int v = 0; v < kWide; ++v) {
      const I32 w = load_words(p + v * kLanes * 4);
#pragma GCC unroll 4
      for (int e = 0; e < kE; ++e) x[v * kE + e] = Format::element(w, e);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const F32 s = splat(weights[r * stride + t]);
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
          sum = __builtin_fmaf(weights[r * stride + t], lane[0], sum);
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
    const long next = (t + kPagedChunk) / tokens;
    const std::byte* later =
        next < a.kv.page_count ? page_at(a.kv, next).keys : page.values;
    long first = 0;
    for (; first + kWide * kLanes <= words; first += kWide * kLanes) {
      page_values<Format, kRows, kWide>(
          a, page, w, kPagedChunk, count, first, sums + first * kE, a.kv.dim,
          t == begin, later
      );
    }
    for (; first + kLanes <= words; first += kLanes) {
      page_values<Format, kRows, 1>(
          a, page, w, kPagedChunk, count, first, sums + first * kE, a.kv.dim,
          t == begin, later
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
  alignas(64) float scores[kRows * kPagedChunk];
  alignas(64) float sums[kRows * kPagedMaxDim];
  const Scorer<Format, kRows> scorer(a, rows);
  const long dim = a.kv.dim, tokens = a.kv.page_tokens;
  for (long t = begin; t < end; t += tokens) {
    scorer.page(page_at(a.kv, t / tokens), scores + (t - begin));
  }
  float offset[kRows];
  for (int r = 0; r < kRows; ++r) {
    float* at = partial + r * (dim + 2);
    float* row = scores + r * kPagedChunk;
    softmax_weights(a, rows.position[r], begin, end - begin, row, at, at + 1);
    if constexpr (Format::kElements == 4) {
      offset[r] = Format::kOffset * weigh_by_scales(a.kv, begin, end, row);
    }
  }
  chunk_values<Format, kRows>(a, scores, begin, end, sums);
  for (int r = 0; r < kRows; ++r) {
    float* out = partial + r * (dim + 2) + 2;
    put_in_order<Format>(sums + r * dim, dim, out);
    if constexpr (Format::kElements == 4) {
      for (long i = 0; i < dim; ++i) out[i] -= offset[r];
    }
  }
}

// The partial results of rows that see no key of the chunk.
HEARTH_INLINE void see_nothing(long rows, long dim, float* partial) {
  for (long r = 0; r < rows; ++r) {
    partial[r * (dim + 2)] = -__builtin_inff();
    partial[r * (dim + 2) + 1] = 0;
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
    }
    float* out = partial + row * (a.kv.dim + 2);
    // The first row's window begins before all others.
    if (a.window > 0 && end <= rows.position[0] + 1 - a.window) {
      see_nothing(n, a.kv.dim, out);
      continue;
    }
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
