#pragma once
// Our kernels' form of quantized_linear() (cpu.cpp) and a GPU's (gpu.cpp). All
// is checked already, but that a GPU's finds the weight held for it.
#include "hearth/ops/quantized_linear/op.h"

namespace hearth::ops {

decltype(quantized_linear) quantized_linear_cpu;
decltype(quantized_linear) quantized_linear_gpu;

}  // namespace hearth::ops
