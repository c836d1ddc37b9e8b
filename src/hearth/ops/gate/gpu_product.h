#pragma once
// A gate and its value multiplied, as kernels of ours: forward and gradient are
// one each.
#include "hearth/ops/gate/faces_impl.h"

namespace hearth::ops {

// Whether the kernels know the activation and take the arrays: gate and value,
// or one that has both.
bool product_fits(Activation act, const Arrays& in, mx::StreamOrDevice s);

// gate, value -> act(gate) value; or, of one array, gate and value as the
// halves of its last dimension
mx::array product_gpu(Activation act, const Arrays& in, mx::StreamOrDevice s);
// gate, value, dy -> dgate, dvalue
Arrays product_gradient_gpu(
    Activation act,
    const Arrays& in,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
