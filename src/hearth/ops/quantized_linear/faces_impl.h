#pragma once
// Our kernels' form of quantized_linear() (cpu.cpp); a GPU's is the weight's
// own, QuantizedWeight::gpu_product(). All is checked already.
#include "hearth/ops/quantized_linear/op.h"

namespace hearth::ops {

decltype(quantized_linear) quantized_linear_cpu;

}  // namespace hearth::ops
