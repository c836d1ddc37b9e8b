#pragma once
// Optimiser steps over ranges of a parameter: gradient in, master weight and
// state updated in place, and the bf16 copy that compute uses refreshed in the
// same pass. Everything is element-wise, so a range may begin anywhere; with
// 8-bit states, which have a scale for each block, at multiples of kStateBlock.
#include <cstdint>

#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

// Where a range's elements are; all pointers are to the whole parameter.
template <class G>
struct StepArgs {
  const G* grad;
  float grad_scale;  // applied to the gradient first: 1/tokens, clipping
  float* weight;
  Bf16* copy;  // null: none
};

struct AdamWArgs {
  float lr, beta1, beta2, eps, decay;
  float correction1, correction2;  // 1 / (1 - beta^step)
};
// m = beta1 m + (1 - beta1) g;  p -= lr (sign(c) + decay p) with
// c = beta1 m + (1 - beta1) g of the old m; then m with beta2.
struct LionArgs {
  float lr, beta1, beta2, decay;
};

// States of 8 bits, 256 to a block that shares a scale: m is scale * f |f| with
// f = code / 127 (signed), v is scale * f^4 with f = code / 255. The powers
// give small values finer steps. v has the fourth power because AdamW divides
// by sqrt(v), which then goes with the square of its code, as m does.
inline constexpr long kStateBlock = 256;
struct State8 {
  std::int8_t* m;
  std::uint8_t* v;
  float *m_scale, *v_scale;  // one for each block
};

template <class G>
struct OptimFunctions {
  void (*adamw)(
      const AdamWArgs&,
      const StepArgs<G>&,
      float* m,
      float* v,
      long begin,
      long end
  ) noexcept;
  void (*adamw8)(
      const AdamWArgs&,
      const StepArgs<G>&,
      const State8&,
      long begin,
      long end
  ) noexcept;
  void (*lion)(
      const LionArgs&,
      const StepArgs<G>&,
      float* m,
      long begin,
      long end
  ) noexcept;
  // m = mu m + g, and update = g + mu m (Nesterov) or m: what Muon
  // orthogonalises.
  void (*momentum)(
      float mu,
      bool nesterov,
      float grad_scale,
      const G* grad,
      float* m,
      float* update,
      long begin,
      long end
  ) noexcept;
};

struct OptimKernels {
  OptimFunctions<float> f32;
  OptimFunctions<Bf16> bf16;
  const OptimFunctions<float>& of(float*) const { return f32; }
  const OptimFunctions<Bf16>& of(Bf16*) const { return bf16; }
};

}  // namespace hearth::kernels
