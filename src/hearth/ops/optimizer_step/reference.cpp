// What an optimiser step means, in MLX's own ops.
#include <cmath>

#include "hearth/ops/optimizer_step/faces_impl.h"

namespace hearth::ops {
namespace {

// Arithmetic in one dtype.
struct Plain {
  mx::Dtype dtype;
  mx::array number(double v) const { return mx::array(v, dtype); }
  mx::array times(double a, const mx::array& b) const {
    return mx::multiply(number(a), b);
  }
  mx::array mix(double beta, const mx::array& a, const mx::array& b) const {
    return mx::add(times(beta, a), times(1 - beta, b));
  }
  mx::array scaled_gradient(const PlainStep& step) const {
    return mx::multiply(
        mx::astype(step.gradient, dtype), number(step.gradient_scale)
    );
  }
};

// What the codes of an 8-bit state stand for; see kernels/optim.h.
mx::array expanded(const mx::array& code, const mx::array& scale, bool fourth) {
  const int n = code.shape(0);
  const auto each =
      mx::slice(mx::repeat(scale, kernels::kStateBlock, 0), {0}, {n});
  const auto t = scale.dtype();
  const auto f =
      mx::divide(mx::astype(code, t), mx::array(fourth ? 255.0 : 127.0, t));
  const auto power =
      fourth ? mx::square(mx::square(f)) : mx::multiply(f, mx::abs(f));
  return mx::multiply(each, power);
}

}  // namespace

Arrays adamw_step_reference(const AdamW& h, const PlainStep& step) {
  const auto& before = step.before;
  const Plain c{before[0].dtype()};
  const auto g = c.scaled_gradient(step);
  const auto m = c.mix(double{h.beta1}, before[1], g);
  const auto v = c.mix(double{h.beta2}, before[2], mx::square(g));
  const auto n = static_cast<double>(step.step);
  const double c1 = 1 - std::pow(double{h.beta1}, n);
  const double c2 = 1 - std::pow(double{h.beta2}, n);
  const auto down =
      mx::add(mx::sqrt(mx::divide(v, c.number(c2))), c.number(double{h.eps}));
  const auto update = mx::add(
      mx::divide(mx::divide(m, c.number(c1)), down),
      c.times(double{h.decay}, before[0])
  );
  return {mx::subtract(before[0], c.times(double{h.lr}, update)), m, v};
}

Arrays adamw8_step_reference(const AdamW& h, const PlainStep& step) {
  PlainStep plain = step;
  const auto& b = step.before;
  plain.before = {
      b[0], expanded(b[1], b[3], false), expanded(b[2], b[4], true)
  };
  return adamw_step_reference(h, plain);
}

Arrays lion_step_reference(const Lion& h, const PlainStep& step) {
  const auto& before = step.before;
  const Plain c{before[0].dtype()};
  const auto g = c.scaled_gradient(step);
  const auto sign = mx::sign(c.mix(double{h.beta1}, before[1], g));
  const auto update = mx::add(sign, c.times(double{h.decay}, before[0]));
  return {
      mx::subtract(before[0], c.times(double{h.lr}, update)),
      c.mix(double{h.beta2}, before[1], g)
  };
}

Arrays momentum_step_reference(float mu, bool nesterov, const PlainStep& step) {
  const auto& m = step.before[0];
  const Plain c{m.dtype()};
  const auto g = c.scaled_gradient(step);
  const auto after = mx::add(c.times(double{mu}, m), g);
  return {nesterov ? mx::add(g, c.times(double{mu}, after)) : after, after};
}

}  // namespace hearth::ops
