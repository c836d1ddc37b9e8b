#include "hearth/ops/optimizer_step/gpu.h"

#include <algorithm>
#include <cmath>

#include "hearth/ops/optimizer_step/gpu_math_impl.h"

namespace hearth::ops {
namespace {

struct StepMath : On {
  // beta a + (1 - beta) b
  mx::array mix(float beta, const mx::array& a, const mx::array& b) const {
    return plus(times(double{beta}, a), times(1 - double{beta}, b));
  }
  mx::array scaled(const mx::array& gradient, const mx::array& by) const {
    return times(mx::astype(gradient, mx::float32, s), by);
  }
  // w - lr (update + decay w)
  mx::array moved(
      const mx::array& w,
      const mx::array& update,
      const mx::array& lr,
      float decay
  ) const {
    const auto pulled = plus(update, times(double{decay}, w));
    return mx::subtract(w, times(lr, pulled), s);
  }
};

mx::array number(double x) {
  return mx::array(static_cast<float>(x));
}

}  // namespace

Arrays StepScalars::arrays() const {
  return {learning_rate, gradient_scale, correction1, correction2, fresh};
}

StepScalars StepScalars::of(std::span<const mx::array> a) {
  return {a[0], a[1], a[2], a[3], a[4]};
}

StepScalars step_scalars(const StepNumbers& n) {
  const auto step = static_cast<double>(n.step);
  return {
      number(n.learning_rate), number(n.gradient_scale),
      number(1 / (1 - std::pow(n.beta1, step))),
      number(1 / (1 - std::pow(n.beta2, step))),
      number(std::pow(step, n.decay_rate))
  };
}

Arrays kept(const GraphStep& step, Arrays after) {
  const auto& fit = step.scalars.fit;
  if (!fit) return after;
  for (std::size_t i = 0; i < after.size(); ++i) {
    after[i] = mx::where(*fit, after[i], step.before[i], step.s);
  }
  return after;
}

// Written so that MLX makes one kernel of it: it is at most eleven operations
// deep, and the only results read twice are its outputs. So whatever depends on
// scalars alone is computed beforehand, and the gradient's scale goes into the
// factors of both moments. A step that is not fit comes with a learning rate
// and a scale of 0, so that nothing changes, and its gradient is replaced by
// zeros, because infinity times zero would be NaN.
Arrays adamw_graph(const AdamW& h, const GraphStep& step) {
  const auto& [before, gradient, scalars, s] = step;
  const On on{s};
  const auto keep = [&step](float beta) {
    const auto& fit = step.scalars.fit;
    const mx::array b(beta);
    return fit ? mx::where(*fit, b, mx::array(1.0f), step.s) : b;
  };
  const auto& scale = scalars.gradient_scale;
  const auto fresh1 = on.times(1 - double{h.beta1}, scale);
  const auto fresh2 = on.times(1 - double{h.beta2}, mx::square(scale, s));
  const auto& rate = scalars.learning_rate;
  const auto root2 = mx::sqrt(scalars.correction2, s);

  auto g = gradient;
  if (scalars.fit) {
    g = mx::where(*scalars.fit, g, mx::array(0, g.dtype()), s);
  }
  g = mx::astype(g, mx::float32, s);
  const auto m =
      on.plus(on.times(keep(h.beta1), before[1]), on.times(fresh1, g));
  const auto v = on.plus(
      on.times(keep(h.beta2), before[2]), on.times(fresh2, mx::square(g, s))
  );
  const auto update = mx::divide(
      on.times(m, on.times(scalars.correction1, rate)),
      on.plus(on.times(mx::sqrt(v, s), root2), mx::array(h.eps)), s
  );
  const auto shrink = [&](const mx::array& w) {
    if (h.decay == 0) return w;
    const auto by =
        mx::subtract(mx::array(1.0f), on.times(double{h.decay}, rate), on.s);
    return on.times(by, w);
  };
  return {mx::subtract(shrink(before[0]), update, s), m, v};
}

Arrays lion_graph(const Lion& h, const GraphStep& step) {
  const auto& [before, gradient, scalars, s] = step;
  const StepMath on{{s}};
  const auto g = on.scaled(gradient, scalars.gradient_scale);
  const auto c = on.mix(h.beta1, before[1], g);
  // MLX's sign of NaN is 0; a broken step must show.
  const auto sign = mx::where(mx::isnan(c, s), c, mx::sign(c, s), s);
  return kept(
      step, {on.moved(before[0], sign, scalars.learning_rate, h.decay),
             on.mix(h.beta2, before[1], g)}
  );
}

Arrays momentum_graph(
    float mu,
    bool nesterov,
    const mx::array& m,
    const mx::array& gradient,
    const mx::array& gradient_scale,
    mx::StreamOrDevice s
) {
  const StepMath on{{s}};
  const auto g = on.scaled(gradient, gradient_scale);
  const auto after = on.plus(on.times(double{mu}, m), g);
  return {nesterov ? on.plus(g, on.times(double{mu}, after)) : after, after};
}

Arrays muon_graph(const Muon& h, const GraphStep& step) {
  const auto& [before, gradient, scalars, s] = step;
  const StepMath on{{s}};
  const auto moments = momentum_graph(
      h.momentum, h.nesterov, before[1], gradient, scalars.gradient_scale, s
  );
  const auto product = [&h,
                        s = step.s](const mx::array& a, const mx::array& b) {
    const auto right = mx::transpose(mx::astype(b, h.compute, s), s);
    const auto y = mx::matmul(mx::astype(a, h.compute, s), right, s);
    return mx::astype(y, mx::float32, s);
  };
  const auto direction = orthogonalize(moments[0], h.steps, product, s);
  // An orthogonal n x k matrix has elements of the size 1 / sqrt(max(n, k)).
  const auto& shape = before[0].shape();
  const double size = double{h.rms} * std::sqrt(std::max(shape[0], shape[1]));
  const auto update = on.times(size, direction);
  return kept(
      step,
      {on.moved(before[0], update, scalars.learning_rate, h.decay), moments[1]}
  );
}

}  // namespace hearth::ops
