#pragma once
// Our kernels' form of quantized_linear() (cpu.cpp); a GPU's is the weight's
// own, QuantizedWeight::gpu_product(). All is checked already.
#include "hearth/ops/quantized_linear/op.h"

namespace hearth::ops {

mx::array quantized_linear_kernels(
    const mx::array& x,
    const QuantizedWeight& w,
    QuantCompute compute,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
