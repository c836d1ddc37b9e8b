#pragma once
// The sum of the squares of many arrays in few kernels: a model's gradients are
// a hundred arrays, most of them small, and MLX takes three kernels for each.
#include "hearth/ops/op.h"

namespace hearth::ops {

// A float32 scalar. Arrays are float32, bfloat16 or float16, together or mixed.
mx::array sum_squares_graph(const Arrays& arrays, mx::StreamOrDevice s = {});

}  // namespace hearth::ops
