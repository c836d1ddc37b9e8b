#pragma once
// Attention over keys and values that lie in pages, for few queries at a time:
// what decoding spends its time on besides products. A unit of work is one key
// head and one chunk of keys; it leaves a partial result for every query, and
// combine() joins them. A query's result depends on its own position and the
// chunks alone, not on the queries that are computed beside it.
//
// A page holds page_tokens tokens of every layer and key head. The part of one
// layer and head begins at `offset` and has
//   keys    [dim / n][page_tokens] words of n consecutive elements (n = 4 over
//           their size), so that one load serves as many tokens as lanes;
//   values  [page_tokens][dim];
//   int8 alone: scales of keys, then of values, page_tokens floats each. Its
//   codes are stored unsigned, 128 above their values.
#include <cstddef>
#include <cstdint>

namespace hearth::kernels {

enum class KvFormat : std::uint8_t { f32, bf16, f16, i8 };

constexpr long kv_bytes_per_element(KvFormat f) noexcept {
  return f == KvFormat::f32 ? 4 : f == KvFormat::i8 ? 1 : 2;
}
// Of one layer and key head in a page.
constexpr std::size_t kv_part_bytes(
    KvFormat f,
    long dim,
    long page_tokens
) noexcept {
  const long scales = f == KvFormat::i8 ? 2 * page_tokens * 4 : 0;
  return static_cast<std::size_t>(
      2 * dim * page_tokens * kv_bytes_per_element(f) + scales
  );
}

// Keys of a unit. page_tokens divides it and is a multiple of 16.
inline constexpr long kPagedChunk = 256;

inline constexpr long kPagedMaxDim = 256;

struct PagedKv {
  KvFormat format = KvFormat::bf16;
  long dim = 0;  // a multiple of 4, at most kPagedMaxDim
  long page_tokens = 0;
  std::byte* const* pages = nullptr;  // the sequence's, first to last
  std::size_t offset = 0;
  long page_count = 0;  // pages that may be prefetched
};

struct PagedAttentionArgs {
  PagedKv kv;
  // Query i of head g of those that share the key head lies at
  // q + i * q_stride + g * dim; scaled already. It stands at position
  // first + i and sees the keys up to there, the last `window` of them where
  // that is not 0.
  const float* q = nullptr;
  long q_stride = 0, queries = 0, group = 1, first = 0, window = 0;
  float softcap = 0;
};

// Floats that a unit leaves: for each query and head of the group a maximum, a
// sum and dim sums of values.
constexpr long paged_partial_floats(long queries, long group, long dim) {
  return queries * group * (dim + 2);
}

struct PagedAttentionKernels {
  // Writes a token's key and value, dim floats each.
  void (*append)(
      const PagedKv&,
      long token,
      const float* key,
      const float* value
  ) noexcept;
  // Keys [begin, end) of one chunk, which is not read where it lies before
  // every query's window.
  void (*attend)(
      const PagedAttentionArgs&,
      long begin,
      long end,
      float* partial
  ) noexcept;
  // One row's result, dim floats, from `chunks` partials, each `stride` floats
  // after the other.
  void (*combine)(
      const float* partial,
      long chunks,
      long stride,
      long dim,
      float* out
  ) noexcept;
  // Keys and values of tokens [begin, end) as rows of dim floats, or of bf16;
  // begin is a page's first. For many queries, which other kernels serve.
  void (*gather)(
      const PagedKv&,
      long begin,
      long end,
      bool bf16,
      void* keys,
      void* values
  ) noexcept;
};

}  // namespace hearth::kernels
