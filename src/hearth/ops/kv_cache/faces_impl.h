#pragma once
// The form of cached attention that runs on our kernels; op.cpp has checked
// what it is given, and makes that of a GPU of the cache's own parts.
#include "hearth/ops/kv_cache/op.h"

namespace hearth::ops {

mx::array cached_attention_cpu(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const std::shared_ptr<KvCache>& cache,
    const AttentionOptions& options,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
