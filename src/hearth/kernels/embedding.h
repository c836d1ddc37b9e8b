#pragma once
// The embedding: rows of a table gathered by token id, and the gradient, which
// adds rows to those of the table.
#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

// The table has elements of type W, the results of type Y. An id outside
// [0, rows) gives NaN, and its gradient is dropped.
template <class W, class Y>
struct EmbeddingFunctions {
  // y[t] = table[ids[t]] for t in [begin, end).
  void (*gather)(
      long rows,
      long dim,
      const int* ids,
      const W* table,
      Y* y,
      long begin,
      long end
  ) noexcept;
};
template <class Y>
struct EmbeddingGradFunctions {
  // grad[ids[t]] += dy[t] for every t in [0, count) whose id leaves the
  // remainder `part` when divided by `parts`. No two parts touch the same row,
  // so each may be a thread's, and each row is added to in the order of t.
  void (*scatter_add)(
      long rows,
      long dim,
      const int* ids,
      const Y* dy,
      float* grad,
      long count,
      int part,
      int parts
  ) noexcept;
};

struct EmbeddingKernels {
  EmbeddingFunctions<float, float> f32_f32;
  EmbeddingFunctions<float, Bf16> f32_bf16;
  EmbeddingFunctions<Bf16, float> bf16_f32;
  EmbeddingFunctions<Bf16, Bf16> bf16_bf16;
  EmbeddingGradFunctions<float> grad_f32;
  EmbeddingGradFunctions<Bf16> grad_bf16;

  const EmbeddingFunctions<float, float>& of(float*, float*) const {
    return f32_f32;
  }
  const EmbeddingFunctions<float, Bf16>& of(float*, Bf16*) const {
    return f32_bf16;
  }
  const EmbeddingFunctions<Bf16, float>& of(Bf16*, float*) const {
    return bf16_f32;
  }
  const EmbeddingFunctions<Bf16, Bf16>& of(Bf16*, Bf16*) const {
    return bf16_bf16;
  }
  const EmbeddingGradFunctions<float>& grad_of(float*) const {
    return grad_f32;
  }
  const EmbeddingGradFunctions<Bf16>& grad_of(Bf16*) const { return grad_bf16; }
};

}  // namespace hearth::kernels
