#pragma once
// How parameters start. Every value is a pure function of seed, the parameter's
// name and its place, so that a model is the same on every machine and adding
// a layer changes no other.
//   zeros, ones     as they say (biases; norm weights)
//   normal          N(0, 0.02): embeddings and projections, as GPT-2 has it
//   small_normal    N(0, 0.02 / sqrt(2 layers)): projections that write to the
//                   residual stream, so that its size does not grow with depth
//   uniform_fan_in  U(-a, a) with a = 1 / sqrt(inputs): a LoRA's A, as PEFT
#include <cstdint>

#include "hearth/nn/parameter_set.h"

namespace hearth::nn {

// Fills p with a float32 leaf.
void initialize(Weight& p, std::uint64_t seed, int layers);

}  // namespace hearth::nn
