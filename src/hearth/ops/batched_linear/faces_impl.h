#pragma once
// The forms that batched_linear() chooses among: our kernels (cpu.cpp) and what
// a GPU runs (gpu.cpp). All is checked already.
#include "hearth/ops/batched_linear/op.h"

namespace hearth::ops {

mx::array batched_linear_kernels(
    const mx::array& x,
    const mx::array& w,
    mx::StreamOrDevice s
);
mx::array batched_linear_gpu(
    const mx::array& x,
    const mx::array& w,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
