#pragma once
// Linear layers side by side, each with its own input: experts, or adapters of
// different requests.
#include "hearth/ops/op.h"

namespace hearth::ops {

// x[b, m, k] w[b, n, k]^T for every b, in x's dtype: float32, or bfloat16
// summed in float32. w has the same dtype; its gradient is float32. Whole
// products go to threads where there are as many as threads, else each is cut
// among them; the result is the same.
mx::array batched_linear(
    const mx::array& x,
    const mx::array& w,
    mx::StreamOrDevice s = {}
);

// The definition, in MLX's own ops; any floating dtype.
mx::array batched_linear_reference(
    const mx::array& x,
    const mx::array& w,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
