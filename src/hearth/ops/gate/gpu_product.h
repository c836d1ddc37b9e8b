#pragma once
// A gate and its value multiplied, as kernels of ours: forward and gradient are
// one each.
#include "hearth/ops/gate/faces_impl.h"

namespace hearth::ops {

// Whether the kernels know the activation and take the arrays.
bool product_fits(
    Activation act,
    const Arrays& gate_and_value,
    mx::StreamOrDevice s
);

// gate, value (or both in one array, in halves) -> act(gate) value
mx::array product_gpu(Activation act, const Arrays& in, mx::StreamOrDevice s);
// The same and dy -> their gradients
Arrays product_gradient_gpu(
    Activation act,
    const Arrays& in,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
