#pragma once
// RMS norm and layer norm over rows, with the residual addition that comes
// before a norm in a transformer folded in. Sums are float32.
//
//   h = x + r (h = x without r)
//   RMS:   y = h / sqrt(mean(h^2) + eps) * w
//   layer: y = (h - mean(h)) / sqrt(var(h) + eps) * w + b
//
// X is the type of the stream (x, h), Y that of the branch (r, y).
#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

template <class X, class Y>
struct NormArgs {
  long dim;
  float eps;
  const X* x;
  const Y* r;      // null: h is x and is not written
  const float* w;  // null: 1
  const float* b;  // null: 0; RMS norm ignores it
  X* h;
  Y* y;
  bool past_caches = false;  // y is so large that it is stored past the caches
};

template <class X, class Y>
struct NormGradArgs {
  long dim;
  float eps;
  const X* h;
  const float* w;  // null: 1
  const Y* dy;
  const X* dh;  // gradient that reaches h by its other uses; null: none
  X* dx;
  Y* dr;  // the same values as dx in the branch's type; null: not wanted
  bool past_caches = false;  // of dx and dr
};

template <class X, class Y>
struct NormFunctions {
  void (*forward)(const NormArgs<X, Y>&, long begin, long end) noexcept;
  // Adds the rows' share to dw[dim] and db[dim]; null: not wanted.
  void (*backward)(
      const NormGradArgs<X, Y>&,
      long begin,
      long end,
      float* dw,
      float* db
  ) noexcept;
};

struct NormKernels {
  template <class X, class Y>
  struct Both {
    NormFunctions<X, Y> rms, layer;
  };
  Both<float, float> f32;
  Both<float, Bf16> mixed;
  Both<Bf16, Bf16> bf16;

  template <class X, class Y>
  const Both<X, Y>& of() const;
};

template <>
inline const NormKernels::Both<float, float>& NormKernels::of() const {
  return f32;
}
template <>
inline const NormKernels::Both<float, Bf16>& NormKernels::of() const {
  return mixed;
}
template <>
inline const NormKernels::Both<Bf16, Bf16>& NormKernels::of() const {
  return bf16;
}

}  // namespace hearth::kernels
