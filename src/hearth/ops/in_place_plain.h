#pragma once
// What arithmetic.h does in place, in MLX's own ops: on a GPU arrays are
// summed, measured and scaled where they are.
#include <span>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Every handle of an array has one description, whose memory is exchanged for
// the result's. The result has been evaluated, or is on its way.
void exchange_memory(mx::array a, const mx::array& result);

void plain_accumulate(mx::array& into, const mx::array& x, float factor);
double plain_sum_squares(std::span<const mx::array> arrays);
void plain_scale_in_place(std::span<mx::array> arrays, float factor);

}  // namespace hearth::ops
