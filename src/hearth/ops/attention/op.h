#pragma once
// Attention of queries over keys and values, by blocks: memory grows with the
// tokens, never with their square, forward or backward.
#include <optional>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Query i stands at position i + query_offset of the keys' sequence. It sees
// key j when all of these hold:
//   causal: j <= position;  window > 0: |position - j| < window;
//   segments given: both tokens carry the same id.
// A query that sees nothing yields zeros.
struct AttentionOptions {
  float scale = 0;    // 0 means 1 / sqrt(head size)
  float softcap = 0;  // c > 0: scores become c tanh(score / c)
  bool causal = true;
  int window = 0;
  // By default the last query meets the last key, which is what a chunk of a
  // longer sequence wants.
  std::optional<int> query_offset = {};
  // Document ids, int32 [batch, queries] and [batch, keys]. The latter may be
  // absent where there are as many queries as keys; the ids of a row are then
  // in [0, keys], as a loader that counts a row's documents gives them.
  std::optional<mx::array> query_segments = {}, key_segments = {};
};

// q [batch, queries, heads, dim], k and v [batch, keys, kv_heads, dim], all
// float32 or all bfloat16; kv_heads divides heads, dim is at most 256. The
// result has q's shape and dtype and is dense. Inputs may have any strides: a
// slice of a joint qkv buffer or a transposed view is read where it lies, as
// long as its last dimension is contiguous; else it is copied first. What a
// query does not see must still be finite.
mx::array attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options = {},
    mx::StreamOrDevice s = {}
);

// The same of one buffer [batch, tokens, heads + 2 kv_heads, dim] that holds
// queries, keys and values in this order. Its gradient is one buffer too, where
// that of three slices would be joined by copying.
mx::array attention_qkv(
    const mx::array& qkv,
    int heads,
    int kv_heads,
    const AttentionOptions& options = {},
    mx::StreamOrDevice s = {}
);

// The definition: every score and an explicit mask, in float32 or, given
// float64, in that.
mx::array attention_reference(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options = {},
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
