// The definitions of activations and gates, in MLX's own ops.
#include <cmath>

#include "hearth/ops/gate/faces_impl.h"

namespace hearth::ops {
namespace {

// Scalars take x's dtype, as MLX would turn float64 into float32 otherwise.
struct Calculator {
  mx::Dtype dtype;
  mx::StreamOrDevice s;
  mx::array number(double v) const { return mx::array(v, dtype); }
  mx::array times(const mx::array& a, const mx::array& b) const {
    return mx::multiply(a, b, s);
  }
  mx::array times(double a, const mx::array& b) const {
    return times(number(a), b);
  }
  mx::array plus(double a, const mx::array& b) const {
    return mx::add(number(a), b, s);
  }
};

// MLX's sigmoid is of single precision inside even for float64.
mx::array sigmoid(const Calculator& c, const mx::array& x) {
  if (x.dtype() != mx::float64) return mx::sigmoid(x, c.s);
  return c.times(0.5, c.plus(1, mx::tanh(c.times(0.5, x), c.s)));
}

mx::array gelu_tanh(const Calculator& c, const mx::array& x) {
  const auto cube = c.times(x, c.times(x, x));
  const auto u = mx::add(x, c.times(0.044715, cube), c.s);
  const auto t = mx::tanh(c.times(std::sqrt(2 / M_PI), u), c.s);
  return c.times(c.times(0.5, x), c.plus(1, t));
}

mx::array act(
    const mx::array& x,
    Activation a,
    float beta,
    mx::StreamOrDevice s
) {
  const Calculator c{x.dtype(), s};
  switch (a) {
    case Activation::silu:
      return c.times(x, sigmoid(c, c.times(beta, x)));
    case Activation::gelu:
      return c.times(
          c.times(0.5, x), c.plus(1, mx::erf(c.times(M_SQRT1_2, x), s))
      );
    case Activation::gelu_tanh:
      return gelu_tanh(c, x);
    case Activation::relu:
      return mx::maximum(x, c.number(0), s);
    case Activation::sigmoid:
      return sigmoid(c, x);
    case Activation::tanh:
      return mx::tanh(x, s);
    case Activation::mish:
      return c.times(x, mx::tanh(mx::logaddexp(x, c.number(0), s), s));
  }
  return x;
}

}  // namespace

mx::array activate_reference(
    const mx::array& x,
    Activation a,
    float beta,
    mx::StreamOrDevice s
) {
  return mx::astype(act(wide(x, s), a, beta, s), x.dtype(), s);
}

mx::array partial_gate_reference(
    const mx::array& value,
    const mx::array& gate,
    const mx::array& alpha,
    PartialGate form,
    mx::StreamOrDevice s
) {
  const auto g = act(wide(gate, s), form.act, form.beta, s);
  auto v = wide(value, s);
  if (form.tanh_value) v = mx::tanh(v, s);
  const auto a = wide(alpha, s);
  const auto rest = mx::subtract(mx::array(1, a.dtype()), a, s);
  const auto mixed = mx::add(mx::multiply(a, g, s), rest, s);
  return mx::astype(mx::multiply(v, mixed, s), value.dtype(), s);
}

mx::array gate_reference(
    const GateConfig& c,
    const Arrays& in,
    mx::StreamOrDevice s
) {
  if (c.has_alpha) {
    return partial_gate_reference(in[1], in[0], in[2], c.form, s);
  }
  const auto& form = c.form;
  if (c.layout == GateLayout::plain) {
    return activate_reference(in[0], form.act, form.beta, s);
  }
  const auto parts =
      c.layout == GateLayout::apart ? in : mx::split(in[0], 2, -1, s);
  const auto gate = activate_reference(parts[0], form.act, form.beta, s);
  return mx::multiply(gate, parts[1], s);
}

}  // namespace hearth::ops
