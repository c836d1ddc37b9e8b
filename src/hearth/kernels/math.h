#pragma once
// Elementary functions and conversions over arrays: y[i] = f(x[i]).
//
// Largest error against the exact value, in units of the last place, over all
// finite arguments: exp 1, log 1.5, tanh 2, sigmoid 2.5, erf 2; below the
// smallest normal number sigmoid may give 0. NaN gives NaN, and infinities
// give the limits (log of a negative number: NaN).
#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

struct MathKernels {
  using Map = void (*)(long n, const float* x, float* y) noexcept;
  Map exp, log, tanh, sigmoid, erf;
  // Rounding to nearest, ties to even.
  void (*float_to_bf16)(long n, const float* x, Bf16* y) noexcept;
  void (*bf16_to_float)(long n, const Bf16* x, float* y) noexcept;
  void (*float_to_fp16)(long n, const float* x, Fp16* y) noexcept;
  void (*fp16_to_float)(long n, const Fp16* x, float* y) noexcept;
};

}  // namespace hearth::kernels
