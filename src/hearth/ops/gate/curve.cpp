#include <numbers>

#include "hearth/ops/gate/curve_impl.h"

namespace hearth::ops {

Curve WideMath::silu(const mx::array& z, float beta) const {
  const auto u = times(beta, z);
  const auto p = mx::sigmoid(u, s_);
  return {times(z, p), times(p, plus(1, times(u, less(1, p))))};
}

// z P(z) with the normal distribution's P: its slope is P(z) + z p(z).
Curve WideMath::gelu(const mx::array& z) const {
  const double root = std::numbers::sqrt2 / 2;
  const auto share = times(0.5, plus(1, mx::erf(times(root, z), s_)));
  const double height = root * std::numbers::inv_sqrtpi;
  const auto bell = mx::exp(times(-0.5, times(z, z)), s_);
  return {times(z, share), plus(share, times(height, times(z, bell)))};
}

Curve WideMath::gelu_tanh(const mx::array& z) const {
  const double scale = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  constexpr double kCube = 0.044715;
  const auto square = times(z, z);
  const auto u = times(scale, times(z, plus(1, times(kCube, square))));
  const auto t = mx::tanh(u, s_);
  const auto share = times(0.5, plus(1, t));
  const auto inner = times(scale, plus(1, times(3 * kCube, square)));
  const auto rise = times(0.5, times(less(1, times(t, t)), inner));
  return {times(z, share), plus(share, times(z, rise))};
}

Curve WideMath::mish(const mx::array& z) const {
  const auto t = mx::tanh(mx::logaddexp(z, number(0), s_), s_);
  const auto rise = times(less(1, times(t, t)), mx::sigmoid(z, s_));
  return {times(z, t), plus(t, times(z, rise))};
}

Curve WideMath::curve(
    const mx::array& z,
    kernels::Activation act,
    float beta
) const {
  using kernels::Activation;
  switch (act) {
    case Activation::silu:
      return silu(z, beta);
    case Activation::gelu:
      return gelu(z);
    case Activation::gelu_tanh:
      return gelu_tanh(z);
    case Activation::relu:
      return {
          mx::maximum(z, number(0), s_), wide(mx::greater(z, number(0), s_))
      };
    case Activation::sigmoid: {
      const auto p = mx::sigmoid(z, s_);
      return {p, times(p, less(1, p))};
    }
    case Activation::tanh: {
      const auto t = mx::tanh(z, s_);
      return {t, less(1, times(t, t))};
    }
    case Activation::mish:
      return mish(z);
  }
  return {z, z};
}

}  // namespace hearth::ops
