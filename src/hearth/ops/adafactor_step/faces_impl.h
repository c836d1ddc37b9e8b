#pragma once
// The two forms that adafactor_step() chooses among: our kernels (cpu.cpp) and
// the graph of device.h run in place (gpu.cpp). All is checked already.
#include "hearth/ops/adafactor_step/op.h"

namespace hearth::ops {

// A parameter as matrices one after the other.
struct Matrices {
  long count = 1, rows = 1, columns = 1;
  bool factored = false;
  explicit Matrices(const mx::Shape& shape) {
    const std::size_t n = shape.size();
    factored = n >= 2;
    for (std::size_t i = 0; i + 2 < n; ++i) count *= shape[i];
    if (factored) rows = shape[n - 2];
    if (n >= 1) columns = shape[n - 1];
  }
};

void adafactor_step_kernels(
    const Adafactor& hyper,
    long step,
    const Parameter& p,
    AdafactorState& s
);
void adafactor_step_gpu(
    const Adafactor& hyper,
    long step,
    const Parameter& p,
    AdafactorState& s
);

}  // namespace hearth::ops
