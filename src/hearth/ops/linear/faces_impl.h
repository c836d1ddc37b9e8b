#pragma once
// The forms that linear(), linear_add() and linear_gated() choose among: our
// kernels' primitives (cpu.cpp) and what a GPU runs (gpu.cpp). Shapes are
// checked already. The definition is declared in op.h.
#include "hearth/ops/linear/op.h"

namespace hearth::ops {

mx::array linear_cpu(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    std::shared_ptr<const PackedWeight> packed,
    mx::StreamOrDevice s
);
decltype(linear_add) linear_add_cpu;
decltype(linear_gated) linear_gated_cpu;

// On a GPU products run in x's dtype: w is rounded to it, and the gradient of a
// bfloat16 product is rounded to bfloat16 before it takes w's own dtype.
mx::array linear_gpu(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    mx::StreamOrDevice s
);
mx::array linear_add_gpu(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale,
    mx::StreamOrDevice s
);
mx::array linear_gated_gpu(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    mx::StreamOrDevice s
);

// dy[..., n]^T x[..., k] over all rows: the gradient of a weight [n, k], made
// row by row, so that nobody has to transpose it afterwards.
mx::array weight_gradient_gpu(
    const mx::array& dy,
    const mx::array& x,
    mx::StreamOrDevice s
);
// The sum of dy's rows [n], added in float32.
mx::array bias_gradient_gpu(const mx::array& dy, mx::StreamOrDevice s);

}  // namespace hearth::ops
