#pragma once
// The forms of the Adafactor step: our kernels (cpu.cpp) and the graph of gpu.h
// run in place (gpu.cpp), between which op.cpp chooses when it has checked
// everything, and the definition (reference.cpp).
#include "hearth/ops/adafactor_step/op.h"
#include "hearth/ops/optimizer_step/faces_impl.h"

namespace hearth::ops {

// A parameter as matrices one after the other. One of fewer than two dimensions
// is a matrix of one row.
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
  mx::Shape shape() const {
    return {
        static_cast<int>(count), static_cast<int>(rows),
        static_cast<int>(columns)
    };
  }
};

decltype(adafactor_step) adafactor_step_cpu;
decltype(adafactor_step) adafactor_step_gpu;

// The states are rows, columns and, where beta1 is not 0, m.
Arrays adafactor_step_reference(const Adafactor& hyper, const PlainStep& step);

}  // namespace hearth::ops
