#include "hearth/ops/adafactor_step/gpu.h"

#include "hearth/ops/adafactor_step/faces_impl.h"

namespace hearth::ops {
namespace {

mx::array number(float x) {
  return mx::array(x);
}

// Means of squares, a little of the new ones taken in.
mx::array blended(
    const mx::array& mean,
    const mx::array& now,
    const mx::array& fresh,
    mx::StreamOrDevice s
) {
  const auto old = mx::reshape(mean, now.shape(), s);
  const auto change = mx::multiply(fresh, mx::subtract(now, old, s), s);
  return mx::add(old, change, s);
}

mx::array root_mean_square(const mx::array& a, mx::StreamOrDevice s) {
  // Row by row first: a long sum in float32 loses digits.
  const auto rows = mx::mean(mx::square(a, s), -1, false, s);
  return mx::sqrt(mx::mean(rows, s), s);
}

}  // namespace

Arrays adafactor_graph(const Adafactor& h, const GraphStep& step) {
  const auto& [before, gradient, scalars, s] = step;
  const Matrices shape(before[0].shape());
  const mx::Shape matrices = shape.shape();
  const auto w = mx::reshape(before[0], matrices, s);
  const auto g = mx::multiply(
      mx::reshape(mx::astype(gradient, mx::float32, s), matrices, s),
      scalars.gradient_scale, s
  );
  const auto squares = mx::add(mx::square(g, s), number(h.eps), s);
  const auto rows =
      blended(before[1], mx::mean(squares, -1, true, s), scalars.fresh, s);
  const auto columns =
      blended(before[2], mx::mean(squares, -2, true, s), scalars.fresh, s);
  auto update = mx::multiply(g, mx::rsqrt(columns, s), s);
  if (shape.factored) {
    const auto mean = mx::mean(rows, -2, true, s);
    const auto factor = mx::sqrt(mx::divide(mean, rows, s), s);
    update = mx::multiply(update, factor, s);
  }
  const auto over = mx::divide(root_mean_square(update, s), number(h.clip), s);
  auto lr = scalars.learning_rate;
  if (h.scale_by_size) {
    const auto size =
        mx::maximum(root_mean_square(w, s), number(h.least_size), s);
    lr = mx::multiply(lr, size, s);
  }
  const auto keep =
      mx::subtract(number(1), mx::multiply(lr, number(h.decay), s), s);
  // NaN stays NaN, so that a broken step shows.
  const auto clipped = mx::divide(lr, mx::maximum(over, number(1), s), s);
  update = mx::multiply(update, clipped, s);
  Arrays after{
      before[0], mx::reshape(rows, before[1].shape(), s),
      mx::reshape(columns, before[2].shape(), s)
  };
  if (before.size() == 4) {
    const auto m = mx::reshape(before[3], matrices, s);
    update = mx::add(
        mx::multiply(number(h.beta1), m, s),
        mx::multiply(number(1 - h.beta1), update, s), s
    );
    after.push_back(mx::reshape(update, before[3].shape(), s));
  }
  const auto moved = mx::subtract(mx::multiply(keep, w, s), update, s);
  after[0] = mx::reshape(moved, before[0].shape(), s);
  return kept(step, std::move(after));
}

// Outside of a compiled step.
void adafactor_step_gpu(
    const Adafactor& hyper,
    long step,
    const Parameter& p,
    AdafactorState& s
) {
  Arrays before{p.weight, s.rows, s.columns};
  if (s.m) before.push_back(*s.m);
  const auto scalars = step_scalars(
      {.learning_rate = double{hyper.lr},
       .gradient_scale = double{p.gradient_scale},
       .decay_rate = double{hyper.decay_rate},
       .step = step}
  );
  run_in_place(
      "Adafactor", p, before,
      adafactor_graph(hyper, {before, p.gradient, scalars})
  );
}

}  // namespace hearth::ops
