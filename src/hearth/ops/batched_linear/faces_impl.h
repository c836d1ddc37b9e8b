#pragma once
// The forms that batched_linear() chooses among: our kernels (cpu.cpp) and what
// a GPU runs (gpu.cpp). All is checked already.
#include "hearth/ops/batched_linear/op.h"

namespace hearth::ops {

decltype(batched_linear) batched_linear_cpu;
decltype(batched_linear) batched_linear_gpu;

}  // namespace hearth::ops
