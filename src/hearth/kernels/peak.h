#pragma once
// What the machine can do at best, and so what every other kernel is measured
// against: instruction loops that touch registers alone (never our own GEMM),
// and a loop that only reads.
namespace hearth::kernels {

// Runs the loop `rounds` times and returns the number of operations done (a
// multiply-add counts two). A null pointer: this ISA has no such instruction.
using PeakLoop = double (*)(long rounds) noexcept;

// Reads all of it with the widest loads there are and returns something that
// depends on every byte. bytes is a multiple of 512.
using ReadLoop = unsigned long (*)(const void* data, long bytes) noexcept;

struct PeakKernels {
  PeakLoop fp32;
  PeakLoop bf16;  // bf16 products summed in fp32
  PeakLoop int8;  // int8 products summed in int32
  ReadLoop read;  // the memory bandwidth
};

}  // namespace hearth::kernels
