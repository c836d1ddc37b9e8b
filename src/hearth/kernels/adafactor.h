#pragma once
// The passes of an Adafactor step: the second moment of a matrix is kept as the
// means of its rows and of its columns. A parameter without rows is a matrix of
// one row whose row factor is 1.
#include "hearth/kernels/optim.h"

namespace hearth::kernels {

// One matrix of a parameter, [rows, columns], row-major.
template <class G>
struct FactoredGrad {
  const G* grad;
  float scale;  // applied to the gradient first
  long columns;
};

struct AdafactorArgs {
  float lr;     // divided by the clipping of the update
  float keep;   // 1 - lr * decay, applied to the weight first
  float beta1;  // of the update's running mean, where there is one
};

template <class G>
struct AdafactorFunctions {
  // For rows [begin, end): the sum of scaled g^2 + eps of each row, and their
  // sum by column, which is written (columns values).
  void (*squares)(
      const FactoredGrad<G>&,
      float eps,
      float* row_sums,
      float* column_sums,
      long begin,
      long end
  ) noexcept;
  // For rows [begin, end): the sum of (scaled g * row_factor * column_factor)^2
  // of each row.
  void (*sizes)(
      const FactoredGrad<G>&,
      const float* row_factor,
      const float* column_factor,
      float* row_sums,
      long begin,
      long end
  ) noexcept;
  // p = keep p - u with u = lr g row_factor column_factor for elements
  // [begin, end) of the matrix, or with its running mean where m is not null:
  // m = beta1 m + (1 - beta1) u. All pointers are to the whole matrix.
  void (*apply)(
      const AdafactorArgs&,
      const StepArgs<G>&,
      long columns,
      const float* row_factor,
      const float* column_factor,
      float* m,
      long begin,
      long end
  ) noexcept;
};

struct AdafactorKernels {
  AdafactorFunctions<float> f32;
  AdafactorFunctions<Bf16> bf16;
  const AdafactorFunctions<float>& of(float*) const { return f32; }
  const AdafactorFunctions<Bf16>& of(Bf16*) const { return bf16; }
};

}  // namespace hearth::kernels
