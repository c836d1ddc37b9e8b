#pragma once
// The forms that fake_quant() chooses among: our kernels (cpu.cpp) and what a
// GPU runs (gpu.cpp). All is checked already. Last the definition
// (reference.cpp).
#include "hearth/ops/fake_quant/op.h"

namespace hearth::ops {

decltype(fake_quant) fake_quant_cpu;

// Affine and symmetric formats.
bool fake_quant_gpu_has(const kernels::QuantFormat& format);
decltype(fake_quant) fake_quant_gpu;

// Affine and symmetric formats whose scales are float32.
mx::array fake_quant_reference(
    const mx::array& w,
    const kernels::QuantFormat& format
);

}  // namespace hearth::ops
