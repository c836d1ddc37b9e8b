#pragma once
// What op.h does in place, in MLX's own ops: on a GPU arrays are
// summed, measured and scaled where they are.
#include <span>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Every handle of an array has one description, whose memory is exchanged for
// the result's. The result has been evaluated, or is on its way.
void exchange_memory(mx::array a, const mx::array& result);

void accumulate_gpu(mx::array& into, const mx::array& x, float factor);
double sum_squares_gpu(std::span<const mx::array> arrays);
void scale_in_place_gpu(std::span<mx::array> arrays, float factor);

}  // namespace hearth::ops
