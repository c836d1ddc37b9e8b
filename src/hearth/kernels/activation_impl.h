#pragma once
// The activations over F32, each with its value and its derivative. T is the
// type the result will be stored as: for Bf16 the quick sigmoid serves, whose
// error of 2^-13 is far below what the store rounds away.
#include "hearth/kernels/gate.h"
#include "hearth/kernels/simd/math_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

struct ValueAndSlope {
  F32 value, slope;
};

HEARTH_INLINE F32 sigmoid_for(float*, F32 x) {
  return sigmoid(x);
}
HEARTH_INLINE F32 sigmoid_for(Bf16*, F32 x) {
  return sigmoid_quick(x);
}
HEARTH_INLINE F32 one() {
  return splat(1.0f);
}

template <Activation kAct>
struct Act;

template <>
struct Act<Activation::silu> {
  template <class T>
  static HEARTH_INLINE F32 value(T* t, F32 z, F32 beta) {
    return z * sigmoid_for(t, z * beta);
  }
  template <class T>
  static HEARTH_INLINE ValueAndSlope both(T* t, F32 z, F32 beta) {
    const F32 s = sigmoid_for(t, z * beta), a = z * s;
    return {a, fma(beta * a, one() - s, s)};
  }
};

template <>
struct Act<Activation::gelu> {
  static HEARTH_INLINE F32 phi(F32 z) {
    return fma(splat(0.5f), erf(z * splat(0.70710678f)), splat(0.5f));
  }
  template <class T>
  static HEARTH_INLINE F32 value(T*, F32 z, F32) {
    return z * phi(z);
  }
  template <class T>
  static HEARTH_INLINE ValueAndSlope both(T*, F32 z, F32) {
    const F32 p = phi(z);
    const F32 density = splat(0.39894228f) * exp(splat(-0.5f) * z * z);
    return {z * p, fma(z, density, p)};
  }
};

// (1 + tanh u) / 2 is sigmoid(2u).
template <>
struct Act<Activation::gelu_tanh> {
  static constexpr float k2Root = 1.59576912f;  // 2 sqrt(2 / pi)
  static HEARTH_INLINE F32 twice_u(F32 z) {
    const F32 cube = fma(splat(0.044715f) * z * z, z, z);
    return splat(k2Root) * cube;
  }
  template <class T>
  static HEARTH_INLINE F32 value(T* t, F32 z, F32) {
    return z * sigmoid_for(t, twice_u(z));
  }
  template <class T>
  static HEARTH_INLINE ValueAndSlope both(T* t, F32 z, F32) {
    const F32 s = sigmoid_for(t, twice_u(z)), a = z * s;
    const F32 slope = fma(splat(3 * 0.044715f * k2Root), z * z, splat(k2Root));
    return {a, fma(a * (one() - s), slope, s)};
  }
};

template <>
struct Act<Activation::relu> {
  template <class T>
  static HEARTH_INLINE F32 value(T*, F32 z, F32) {
    return select(z <= zero(), zero(), z);
  }
  template <class T>
  static HEARTH_INLINE ValueAndSlope both(T* t, F32 z, F32 beta) {
    return {value(t, z, beta), select(zero() < z, one(), zero())};
  }
};

template <>
struct Act<Activation::sigmoid> {
  template <class T>
  static HEARTH_INLINE F32 value(T* t, F32 z, F32) {
    return sigmoid_for(t, z);
  }
  template <class T>
  static HEARTH_INLINE ValueAndSlope both(T* t, F32 z, F32) {
    const F32 s = sigmoid_for(t, z);
    return {s, s * (one() - s)};
  }
};

template <>
struct Act<Activation::tanh> {
  template <class T>
  static HEARTH_INLINE F32 value(T*, F32 z, F32) {
    return tanh(z);
  }
  template <class T>
  static HEARTH_INLINE ValueAndSlope both(T*, F32 z, F32) {
    const F32 t = tanh(z);
    return {t, fnma(t, t, one())};
  }
};

// tanh(log(1 + e)) = n / (n + 2) with e = e^z and n = e (e + 2); from z = 20 on
// it is 1 to the last bit.
template <>
struct Act<Activation::mish> {
  template <class T>
  static HEARTH_INLINE F32 value(T*, F32 z, F32) {
    const F32 e = exp(min(splat(20.0f), z)), n = e * (e + splat(2.0f));
    return z * (n / (n + splat(2.0f)));
  }
  template <class T>
  static HEARTH_INLINE ValueAndSlope both(T*, F32 z, F32) {
    const F32 e = exp(min(splat(20.0f), z)), n = e * (e + splat(2.0f));
    const F32 t = n / (n + splat(2.0f)), s = e / (e + one());
    return {z * t, fma(z * s, fnma(t, t, one()), t)};
  }
};

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
