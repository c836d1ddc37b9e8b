#pragma once
// A kernel's body as a whole CUDA program, and what NVIDIA's run-time compiler
// makes of it. MLX's own way of compiling kernels reads its headers and CUDA's
// each time a process begins, two seconds a kernel; a body needs neither.
#include <string>

#include "hearth/ops/gpu_kernel/gpu_kernel.h"

namespace hearth::ops {

// The compiler comes with MLX's CUDA library; it is not there without it.
bool has_cuda_compiler();

// `body` is what stands between the braces; inputs and outputs are its
// parameters, in that order, with `sizes` between them.
std::string cuda_source(
    const GpuKernel& kernel,
    const std::string& functions,
    const std::string& body,
    const Arrays& inputs,
    const std::vector<mx::Dtype>& outputs
);

// PTX for any GPU since Ampere, which the driver finishes for the one at hand.
// Kept for the life of the process.
const std::string& compile_cuda(const std::string& source);

std::string cuda_type(mx::Dtype dtype);

}  // namespace hearth::ops
