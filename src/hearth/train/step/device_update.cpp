#include "hearth/train/step/device_update.h"

#include <limits>
#include <utility>

#include "hearth/optim/optimizer.h"

namespace hearth::train {
namespace {

mx::array scalar(double value) {
  return mx::array(static_cast<float>(value));
}

// Of all gradients together, multiplied by whatever they are.
mx::array norm_of(std::span<const mx::array> gradients) {
  auto sum = mx::array(0.0f);
  for (const mx::array& g : gradients) {
    sum = mx::add(sum, mx::sum(mx::square(mx::astype(g, mx::float32))));
  }
  return mx::sqrt(sum);
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

// In: sums of loss and weight, loss scale, limits of loss and norm, the
// optimiser's scalars, gradients, the optimiser's arrays. Out: the numbers, the
// arrays after the step, the weights as products read them.
Arrays UpdateFunction::run(const Arrays& in) const {
  Reader read(in);
  const mx::array loss = read.one(), weight = read.one();
  const mx::array loss_scale = read.one();
  const mx::array most_loss = read.one(), most_norm = read.one();
  const Arrays numbers = read.some(ops::StepScalars::kCount);
  const Arrays gradients = read.some(parameters_.size());
  const Arrays before = read.rest();

  const auto divisor = mx::multiply(weight, loss_scale);
  const auto mean = mx::divide(loss, weight);
  const auto norm = mx::divide(norm_of(gradients), divisor);
  auto applied = mx::logical_and(mx::isfinite(mean), mx::isfinite(norm));
  applied = mx::logical_and(applied, mx::less_equal(mean, most_loss));
  applied = mx::logical_and(applied, mx::less_equal(norm, most_norm));

  auto scalars = ops::StepScalars::of(numbers);
  scalars.gradient_scale = mx::divide(clip_factor(norm, clip_), divisor);
  Arrays after = parts_.optimizer.step_graph(before, gradients, scalars);
  for (std::size_t i = 0; i < after.size(); ++i) {
    after[i] = mx::where(applied, after[i], before[i]);
  }
  Arrays out = {
      mx::stack({loss, weight, norm, mx::astype(applied, mx::float32)})
  };
  out.insert(out.end(), after.begin(), after.end());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    out.push_back(as_read(i, after[masters_[i]]));
  }
  return out;
}

mx::array UpdateFunction::send(
    GradientFunction::Sums sums,
    const Order& order
) {
  Arrays in = {
      std::move(sums.loss), std::move(sums.weight), scalar(order.loss_scale),
      scalar(order.limits.loss), scalar(order.limits.norm)
  };
  append(in, parts_.optimizer.scalars(order.lr).arrays());
  append(in, std::move(sums.gradients));
  append(in, parts_.optimizer.arrays());
  Arrays out = compiled_(in);
  // Whoever else holds an array keeps its memory from being taken over.
  in.clear();
  weights_.assign(out.end() - std::ssize(parameters_), out.end());
  parts_.optimizer.adopt(
      std::span(out).subspan(1, out.size() - 1 - parameters_.size())
  );
  mx::async_eval(out);
  return out[0];
}

UpdateFunction::Numbers UpdateFunction::numbers(mx::array sent) {
  sent.eval();
  const auto* v = sent.data<float>();
  return {v[0], v[1], v[2], v[3] != 0};
}

}  // namespace hearth::train
