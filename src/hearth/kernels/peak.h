#pragma once
// Instruction loops that touch registers alone: what the arithmetic units can
// do at best, and so what every other kernel is measured against. Never our
// own GEMM.
namespace hearth::kernels {

// Runs the loop `rounds` times and returns the number of operations done (a
// multiply-add counts two). A null pointer: this ISA has no such instruction.
using PeakLoop = double (*)(long rounds) noexcept;

struct PeakKernels {
  PeakLoop fp32;
  PeakLoop bf16;  // bf16 products summed in fp32
  PeakLoop int8;  // int8 products summed in int32
};

}  // namespace hearth::kernels
