// What an Adafactor step means, in MLX's own ops.
#include <cmath>

#include "hearth/ops/adafactor_step/faces_impl.h"

namespace hearth::ops {
namespace {

mx::array root_mean_square(const mx::array& a) {
  return mx::sqrt(mx::mean(mx::square(a)));
}

}  // namespace

Arrays adafactor_step_reference(const Adafactor& h, const PlainStep& step) {
  const auto& before = step.before;
  const auto t = before[0].dtype();
  const Matrices shape(before[0].shape());
  const auto number = [t](double x) { return mx::array(x, t); };
  const auto mix = [&](double beta, const mx::array& old,
                       const mx::array& now) {
    return mx::add(
        mx::multiply(number(beta), mx::reshape(old, now.shape())),
        mx::multiply(number(1 - beta), now)
    );
  };
  const auto w = mx::reshape(before[0], shape.shape());
  const auto g = mx::multiply(
      mx::reshape(mx::astype(step.gradient, t), shape.shape()),
      number(step.gradient_scale)
  );
  const double beta2 =
      1 - std::pow(static_cast<double>(step.step), double{h.decay_rate});
  const auto squares = mx::add(mx::square(g), number(double{h.eps}));
  const auto rows = mix(beta2, before[1], mx::mean(squares, 2, true));
  const auto columns = mix(beta2, before[2], mx::mean(squares, 1, true));
  auto update = mx::multiply(g, mx::rsqrt(columns));
  if (shape.factored) {
    const auto mean = mx::mean(rows, 1, true);
    update = mx::multiply(update, mx::sqrt(mx::divide(mean, rows)));
  }
  const auto over =
      mx::divide(root_mean_square(update), number(double{h.clip}));
  auto lr = number(double{h.lr});
  if (h.scale_by_size) {
    const auto least = number(double{h.least_size});
    lr = mx::multiply(lr, mx::maximum(root_mean_square(w), least));
  }
  update = mx::divide(mx::multiply(lr, update), mx::maximum(number(1), over));
  Arrays states{
      mx::reshape(rows, before[1].shape()),
      mx::reshape(columns, before[2].shape())
  };
  if (h.beta1 != 0) {
    update = mix(double{h.beta1}, before[3], update);
    states.push_back(mx::reshape(update, before[3].shape()));
  }
  const auto keep =
      mx::subtract(number(1), mx::multiply(lr, number(double{h.decay})));
  const auto after = mx::subtract(mx::multiply(w, keep), update);
  states.insert(states.begin(), mx::reshape(after, before[0].shape()));
  return states;
}

}  // namespace hearth::ops
