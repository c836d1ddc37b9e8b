#pragma once
// Activations and their slopes for what a GPU runs, where a gradient is written
// by hand.
#include "hearth/kernels/gate.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

struct Curve {
  mx::array value, slope;
};

// Float32 arithmetic with plain numbers.
class WideMath {
 public:
  explicit WideMath(mx::StreamOrDevice s) : s_(s) {}
  mx::array wide(const mx::array& x) const {
    return mx::astype(x, mx::float32, s_);
  }
  mx::array times(const mx::array& a, const mx::array& b) const {
    return mx::multiply(a, b, s_);
  }
  mx::array times(double a, const mx::array& b) const {
    return times(number(a), b);
  }
  mx::array plus(const mx::array& a, const mx::array& b) const {
    return mx::add(a, b, s_);
  }
  mx::array plus(double a, const mx::array& b) const {
    return plus(number(a), b);
  }
  mx::array less(double a, const mx::array& b) const {
    return mx::subtract(number(a), b, s_);
  }
  // silu is z sigmoid(beta z); beta is nothing to the others.
  Curve curve(const mx::array& z, kernels::Activation act, float beta) const;

 private:
  mx::StreamOrDevice s_;

  static mx::array number(double x) { return mx::array(static_cast<float>(x)); }
  Curve silu(const mx::array& z, float beta) const;
  Curve gelu(const mx::array& z) const;
  Curve gelu_tanh(const mx::array& z) const;
  Curve mish(const mx::array& z) const;
};

}  // namespace hearth::ops
