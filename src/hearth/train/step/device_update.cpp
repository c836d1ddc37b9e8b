#include "hearth/train/step/device_update.h"

#include <limits>
#include <utility>

#include "hearth/ops/arithmetic/gpu_squares.h"
#include "hearth/optim/optimizer.h"

namespace hearth::train {
namespace {

mx::array scalar(double value) {
  return mx::array(static_cast<float>(value));
}

// min(1, limit / norm), without a limit 1.
mx::array clip_factor(const mx::array& norm, double limit) {
  if (limit <= 0) return mx::array(1.0f);
  return mx::minimum(
      mx::array(1.0f),
      mx::divide(
          scalar(limit),
          mx::maximum(norm, scalar(std::numeric_limits<float>::min()))
      )
  );
}

}  // namespace

UpdateFunction::UpdateFunction(const StepParts& parts, const StepConfig& config)
    : parts_(parts),
      clip_(config.clip),
      compute_(config.compute),
      parameters_(parts.model.parameters().trainable()),
      masters_(parts.optimizer.places()),
      compiled_(compiled_on_gpu([this](const Arrays& in) { return run(in); })) {
}

mx::array UpdateFunction::as_read(
    std::size_t parameter,
    const mx::array& master
) const {
  const bool matrix = parameters_[parameter]->shape.size() > 1;
  return matrix ? mx::astype(master, compute_) : master;
}

const Arrays& UpdateFunction::weights() {
  if (!weights_.empty()) return weights_;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    weights_.push_back(as_read(i, parameters_[i]->value()));
  }
  mx::eval(weights_);
  return weights_;
}

void UpdateFunction::forget() {
  weights_.clear();
}

// In: whether the step is fit, the optimiser's scalars, gradients, the
// optimiser's arrays. Out: the arrays after the step, the weights as products
// read them.
Arrays UpdateFunction::run(const Arrays& in) const {
  Reader read(in);
  const mx::array fit = read.one();
  auto scalars = ops::StepScalars::of(read.some(ops::StepScalars::kCount));
  scalars.fit = fit;
  const Arrays gradients = read.some(parameters_.size());
  const Arrays before = read.rest();
  Arrays out = parts_.optimizer.step_graph(before, gradients, scalars);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    out.push_back(as_read(i, out[masters_[i]]));
  }
  return out;
}

mx::array UpdateFunction::send(
    GradientFunction::Sums sums,
    const Order& order
) {
  const mx::array loss = std::move(sums.loss), weight = std::move(sums.weight);
  const auto divisor = mx::multiply(weight, scalar(order.loss_scale));
  const auto mean = mx::divide(loss, weight);
  const auto norm =
      mx::divide(mx::sqrt(ops::sum_squares_graph(sums.gradients)), divisor);
  auto fit = mx::logical_and(mx::isfinite(mean), mx::isfinite(norm));
  fit = mx::logical_and(fit, mx::less_equal(mean, scalar(order.limits.loss)));
  fit = mx::logical_and(fit, mx::less_equal(norm, scalar(order.limits.norm)));
  const auto numbers =
      mx::stack({loss, weight, norm, mx::astype(fit, mx::float32)});

  const auto zero = mx::array(0.0f);
  auto scalars = parts_.optimizer.scalars(order.lr);
  scalars.gradient_scale =
      mx::where(fit, mx::divide(clip_factor(norm, clip_), divisor), zero);
  scalars.learning_rate = mx::where(fit, scalars.learning_rate, zero);
  Arrays in = {fit};
  append(in, scalars.arrays());
  append(in, std::move(sums.gradients));
  append(in, parts_.optimizer.arrays());
  Arrays out = compiled_(in);
  // Whoever else holds an array keeps its memory from being taken over.
  in.clear();
  weights_.assign(out.end() - std::ssize(parameters_), out.end());
  parts_.optimizer.adopt(std::span(out).first(out.size() - parameters_.size()));
  out.push_back(numbers);
  mx::async_eval(out);
  return numbers;
}

UpdateFunction::Numbers UpdateFunction::numbers(mx::array sent) {
  sent.eval();
  const auto* v = sent.data<float>();
  return {v[0], v[1], v[2], v[3] != 0};
}

}  // namespace hearth::train
