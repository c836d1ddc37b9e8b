#pragma once
// The forms that fake_quant() chooses among: our kernels (cpu.cpp) and what a
// GPU runs (gpu.cpp). All is checked already.
#include "hearth/ops/fake_quant/op.h"

namespace hearth::ops {

mx::array fake_quant_kernels(
    const mx::array& w,
    const kernels::QuantFormat& format,
    mx::StreamOrDevice s
);

// Affine and symmetric formats.
bool fake_quant_gpu_has(const kernels::QuantFormat& format);
mx::array fake_quant_gpu(
    const mx::array& w,
    const kernels::QuantFormat& format,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
