#include "hearth/train/loop/session_step.h"

#include <cmath>

namespace hearth::train {
namespace {

// Gradients are sums over the step's tokens, so that what suits a mean is
// shared among them.
optim::LossScale loss_scale_of(const Session& s) {
  if (s.compute != mx::float16) return optim::LossScale::off();
  const double asked = s.recipe.train.loss_scale;
  const double share =
      (asked > 0 ? asked : 65536) / static_cast<double>(s.recipe.step_tokens());
  // A power of two, so that it rounds nothing.
  return optim::LossScale(std::exp2(std::floor(std::log2(share))));
}

}  // namespace

std::optional<RandomKey> noise_of(
    const Recipe& recipe,
    const Objective& objective
) {
  const bool dropout = recipe.lora && recipe.lora->dropout > 0;
  if (!dropout && !objective.draws_noise()) return {};
  return RandomKey(recipe.run.seed).fold("noise");
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Session& s) {
  return optim::Optimizer::make(
      s.recipe.optim, s.model->parameters().trainable()
  );
}

std::unique_ptr<Step> make_step(
    Session& s,
    optim::Optimizer& optimizer,
    const Objective* in_place
) {
  const Objective& objective = in_place != nullptr ? *in_place : *s.objective;
  StepConfig config;
  config.compute = s.compute;
  config.eval_interval = static_cast<int>(s.recipe.train.eval_interval);
  config.clip = s.recipe.optim.clip;
  config.loss_scale = loss_scale_of(s);
  config.noise = noise_of(s.recipe, objective);
  return make_step({*s.model, objective, optimizer}, config);
}

}  // namespace hearth::train
