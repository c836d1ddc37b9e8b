#pragma once
// The forms of attention between which op.cpp chooses, and its options with
// every default filled in.
#include "hearth/ops/attention/op.h"

namespace hearth::ops {

struct ResolvedOptions {
  float scale, softcap;
  bool causal;
  int window, query_offset;
  std::optional<mx::array> query_segments, key_segments;  // both or neither
  // Whether queries and keys are the same tokens: each sees itself at least.
  bool self;
};

// Throws UsageError "[where] ..." unless shapes, dtypes and options agree.
ResolvedOptions resolve(
    const char* where,
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options,
    mx::StreamOrDevice s
);

// Of q, k and v, or of one joint buffer with that many heads; 0 where there is
// none. shape is the result's.
mx::array attention_cpu(
    const Arrays& tensors,
    const mx::Shape& shape,
    const ResolvedOptions& o,
    int heads,
    int kv_heads,
    mx::StreamOrDevice s
);

mx::array attention_gpu(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
);
// Queries, keys and values of a joint buffer as views of it. Its gradient joins
// theirs in one copy.
Arrays split_heads_gpu(
    const mx::array& qkv,
    int heads,
    int kv_heads,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
