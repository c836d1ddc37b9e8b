#pragma once
// The forms that linears() chooses among: our kernels (cpu.cpp) and what a GPU
// runs (gpu.cpp), where every part has its weight. All is checked already.
#include "hearth/ops/linears/op.h"

namespace hearth::ops {

Arrays linears_kernels(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s
);
Arrays linears_gpu(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
