#pragma once
// The forms that linears() chooses among: our kernels (cpu.cpp) and what a GPU
// runs (gpu.cpp), where every part has its weight. All is checked already.
#include "hearth/ops/linears/op.h"

namespace hearth::ops {

decltype(linears) linears_cpu;
decltype(linears) linears_gpu;

}  // namespace hearth::ops
