#include "hearth/train/step/device_update.h"

#include <limits>
#include <map>
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
      groups_(step_groups(parts.model)),
      masters_(parts.optimizer.places()),
      compiled_(compiled_on_gpu([this](const Arrays& in) { return run(in); })) {
}

mx::array UpdateFunction::as_read(
    const nn::WeightGroup& group,
    std::span<const mx::array> masters
) const {
  if (group.front()->shape.size() < 2) return masters.front();
  Arrays parts;
  for (const auto& m : masters) parts.push_back(mx::astype(m, compute_));
  return nn::join_rows(parts);
}

const Arrays& UpdateFunction::weights() {
  if (!weights_.empty()) return weights_;
  for (const auto& group : groups_) {
    Arrays masters;
    for (const nn::Weight* w : group) masters.push_back(w->value());
    weights_.push_back(as_read(group, masters));
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
  const Arrays by_group = read.some(groups_.size());
  const Arrays before = read.rest();
  std::map<const nn::Weight*, mx::array> gradient_of;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const auto parts = nn::split_rows(groups_[i], by_group[i]);
    for (std::size_t j = 0; j < parts.size(); ++j) {
      gradient_of.emplace(groups_[i][j], parts[j]);
    }
  }
  const auto parameters = parts_.model.parameters().trainable();
  Arrays gradients;
  for (const nn::Weight* w : parameters) gradients.push_back(gradient_of.at(w));
  Arrays out = parts_.optimizer.step_graph(before, gradients, scalars);
  std::map<const nn::Weight*, mx::array> master_of;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    master_of.emplace(parameters[i], out[masters_[i]]);
  }
  for (const auto& group : groups_) {
    Arrays masters;
    for (const nn::Weight* w : group) masters.push_back(master_of.at(w));
    out.push_back(as_read(group, masters));
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
  weights_.assign(out.end() - std::ssize(groups_), out.end());
  parts_.optimizer.adopt(std::span(out).first(out.size() - groups_.size()));
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
