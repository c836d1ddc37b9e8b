#pragma once
// Attention by blocks with an online softmax: no buffer ever grows with
// queries x keys. Work is cut into units; a caller hands ranges of units to
// its threads, and no result depends on how it cut them.
#include <cstddef>
#include <cstdint>

namespace hearth::kernels {

enum class AttentionType : std::uint8_t { kFloat32, kBfloat16, kInt8 };

// [batch, token, head, dim] with strides in elements; dim is contiguous. The
// views of one call may be slices of one buffer.
template <class Pointer>
struct AttentionSlice {
  Pointer data = nullptr;
  std::ptrdiff_t batch = 0, token = 0, head = 0;
};
using AttentionInput = AttentionSlice<const void*>;
using AttentionOutput = AttentionSlice<void*>;
// One float per token and head: what an int8 value is multiplied with.
using AttentionScales = AttentionSlice<const float*>;
// One id per token [batch, token].
struct AttentionSegments {
  const std::int32_t* data = nullptr;
  std::ptrdiff_t batch = 0;
};

// Query i stands at position i + query_offset of the keys' sequence. It sees
// key j when all of these hold:
//   causal: j <= position;  window > 0: |position - j| < window;
//   segments given: both carry the same id.
// A query that sees no key yields zeros and a log-sum-exp of -inf. Keys it
// does not see must be finite: they are multiplied by zero.
struct AttentionArgs {
  std::ptrdiff_t batch = 1, heads = 1, kv_heads = 1;  // kv_heads | heads
  std::ptrdiff_t queries = 0, keys = 0;
  std::ptrdiff_t dim = 0;                              // 1..256
  AttentionType query_type = AttentionType::kFloat32;  // and of out; not int8
  AttentionType kv_type = AttentionType::kFloat32;
  AttentionInput q, k, v;
  AttentionScales k_scale, v_scale;  // for int8 alone
  AttentionOutput out;
  float* lse = nullptr;  // [batch, heads, queries], natural log; may be null

  float scale = 1;    // > 0
  float softcap = 0;  // c > 0: scores become c tanh(score / c)
  bool causal = false;
  std::ptrdiff_t window = 0;
  std::ptrdiff_t query_offset = 0;
  AttentionSegments query_segments, key_segments;  // both or neither
};

// forward is what the forward pass was given, out and lse filled. Gradients
// have query_type; kv_type must be the same.
struct AttentionGradArgs {
  AttentionArgs forward;
  AttentionInput dout;
  AttentionOutput dq, dk, dv;
};

// Queries of one forward unit, and keys of one decode unit.
inline constexpr std::ptrdiff_t kAttentionQueryBlock = 256;
inline constexpr std::ptrdiff_t kAttentionDecodeChunk = 512;
inline constexpr std::ptrdiff_t kAttentionMaxDim = 256;

constexpr std::ptrdiff_t attention_blocks(
    std::ptrdiff_t n,
    std::ptrdiff_t block
) noexcept {
  return (n + block - 1) / block;
}
// A unit is one (batch, head, block of queries).
constexpr std::ptrdiff_t attention_forward_units(
    const AttentionArgs& a
) noexcept {
  return a.batch * a.heads * attention_blocks(a.queries, kAttentionQueryBlock);
}
// A unit is one (batch, kv head): dk and dv need no atomics, and the query
// heads that share a kv head are summed in order.
constexpr std::ptrdiff_t attention_backward_units(
    const AttentionArgs& a
) noexcept {
  return a.batch * a.kv_heads;
}
// Decoding cuts the keys, for there are few queries. A unit is one (batch, kv
// head, chunk of keys); all query heads of that kv head go through it
// together, heads / kv_heads x queries of them, at most kAttentionQueryBlock.
// Each leaves a partial result, and combine joins those of one (batch, head).
constexpr std::ptrdiff_t attention_decode_chunks(
    const AttentionArgs& a
) noexcept {
  const auto n = attention_blocks(a.keys, kAttentionDecodeChunk);
  return n > 0 ? n : 1;
}
constexpr std::ptrdiff_t attention_decode_units(
    const AttentionArgs& a
) noexcept {
  return a.batch * a.kv_heads * attention_decode_chunks(a);
}
// Floats of the partial results of all decode units: per unit and query row a
// maximum, a sum, and the unnormalised output.
constexpr std::ptrdiff_t attention_decode_partial_floats(
    const AttentionArgs& a
) noexcept {
  return attention_decode_units(a) * (a.heads / a.kv_heads) * a.queries *
         (a.dim + 2);
}

// Rows to be quantised to int8, each with the scale that brings its largest
// magnitude to 127. A row with a NaN or an infinity gets a scale that is not
// finite either, so that results computed from it show it.
struct AttentionQuantizeArgs {
  AttentionType type = AttentionType::kFloat32;  // of the source; not int8
  const void* from = nullptr;
  std::int8_t* to = nullptr;
  float* scales = nullptr;
  std::ptrdiff_t dim = 0;
  std::ptrdiff_t from_stride = 0, to_stride = 0, scale_stride = 1;
};

// Scratch is 64-byte aligned, one per thread, and its contents do not matter.
// The range is of units; of combine, of (batch, head) pairs.
struct AttentionKernels {
  std::size_t (*forward_scratch)(const AttentionArgs&) noexcept;
  void (*forward)(
      const AttentionArgs&,
      std::ptrdiff_t begin,
      std::ptrdiff_t end,
      void* scratch
  ) noexcept;
  std::size_t (*backward_scratch)(const AttentionGradArgs&) noexcept;
  void (*backward)(
      const AttentionGradArgs&,
      std::ptrdiff_t begin,
      std::ptrdiff_t end,
      void* scratch
  ) noexcept;
  // Same scratch size as forward.
  void (*decode)(
      const AttentionArgs&,
      std::ptrdiff_t begin,
      std::ptrdiff_t end,
      float* partials,
      void* scratch
  ) noexcept;
  void (*decode_combine)(
      const AttentionArgs&,
      std::ptrdiff_t begin,
      std::ptrdiff_t end,
      const float* partials
  ) noexcept;
  // The range is of rows.
  void (*quantize)(
      const AttentionQuantizeArgs&,
      std::ptrdiff_t begin,
      std::ptrdiff_t end
  ) noexcept;
};

}  // namespace hearth::kernels
