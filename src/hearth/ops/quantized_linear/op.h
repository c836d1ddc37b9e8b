#pragma once
// x * W^T with W quantised. W has no gradient; x has, so that adapters below
// train through a quantised model (QLoRA).
#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::ops {

// x[..., cols] float32 or bfloat16 -> y[..., rows] of the same dtype.
//
// compute, on a CPU: kInt8 rounds x to int8 in groups of 16 to 64 columns (see
// kernels/quant/matmul.h) and is what inference runs; kExact multiplies by the
// weights as they are. The gradient is exact either way: dx = dy * W. On a GPU
// MLX's quantized_matmul runs and compute has no say.
//
// A NaN or infinity in a row of x makes that row of y NaN with kInt8, and
// propagates as in the reference with kExact.
mx::array quantized_linear(
    const mx::array& x,
    const QuantizedWeight& w,
    QuantCompute compute = QuantCompute::kInt8,
    mx::StreamOrDevice s = {}
);

// The definition: a product with the weights read back, in x's dtype.
mx::array quantized_linear_reference(
    const mx::array& x,
    const mx::array& weights,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
