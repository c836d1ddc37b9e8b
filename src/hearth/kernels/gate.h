#pragma once
// Activations and the gated products of a transformer's feed-forward part.
//
//   plain:  y = act(gate)
//   gated:  y = v (alpha act(gate) + 1 - alpha), v = value or tanh(value)
//
// With alpha = 1 the gated form is the usual act(gate) * value.
#include "hearth/kernels/scalar.h"

namespace hearth::kernels {

enum class Activation { silu, gelu, gelu_tanh, relu, sigmoid, tanh, mish };
inline constexpr int kActivations = 7;

// Rows of `dim` elements; a stride is the distance between rows, so that gate
// and value may be halves of one array.
template <class T>
struct GateArgs {
  long dim;
  const T* gate;
  long gate_stride;
  const T* value;  // null: the plain form
  long value_stride;
  T* y;
  long y_stride;
  float beta;          // silu is z sigmoid(beta z); others ignore it
  const float* alpha;  // null: 1
  bool tanh_value;
  bool past_caches = false;  // y is so large that it is stored past the caches
};

template <class T>
struct GateGradArgs {
  GateArgs<T> forward;  // y is ignored
  const T* dy;
  long dy_stride;
  T* dgate;
  long dgate_stride;
  T* dvalue;  // null in the plain form
  long dvalue_stride;
};

template <class T>
struct GateFunctions {
  void (*forward)(const GateArgs<T>&, long begin, long end) noexcept;
  // Adds the rows' share of alpha's gradient to *dalpha; null: not wanted.
  void (*backward)(
      const GateGradArgs<T>&,
      long begin,
      long end,
      float* dalpha
  ) noexcept;
};

struct GateKernels {
  GateFunctions<float> f32[kActivations];
  GateFunctions<Bf16> bf16[kActivations];

  const GateFunctions<float>& of(Activation a, float*) const {
    return f32[static_cast<int>(a)];
  }
  const GateFunctions<Bf16>& of(Activation a, Bf16*) const {
    return bf16[static_cast<int>(a)];
  }
};

}  // namespace hearth::kernels
