#pragma once
// The forms of the small arithmetic between which op.cpp chooses. It has
// checked what they are given.
#include "hearth/ops/arithmetic/op.h"

namespace hearth::ops {

decltype(add) add_cpu;
decltype(scale) scale_cpu;
decltype(cast) cast_cpu;
decltype(cast_stochastic) cast_stochastic_cpu;
decltype(fork) fork_cpu;

decltype(add) add_gpu;
decltype(scale) scale_gpu;
decltype(cast_stochastic) cast_stochastic_gpu;
decltype(fork) fork_gpu;

}  // namespace hearth::ops
