#include "hearth/train/plan/step_time.h"

#include <algorithm>
#include <cmath>

#include "hearth/train/loop/session.h"

namespace hearth::train {
namespace {

// Measured by `hearth doctor --measure` on two cores of a Zen 4, AVX-512-BF16,
// in bf16: what stands in for a machine that was not measured itself.
const hardware::TrainingShare kTypical[] = {
    {"bf16", 2, 64, 0.46},  {"bf16", 2, 128, 0.62}, {"bf16", 2, 256, 0.76},
    {"bf16", 2, 512, 0.82}, {"bf16", 2, 768, 0.86},
};

}  // namespace

double training_share(
    std::span<const hardware::TrainingShare> measured,
    double dim
) {
  const auto shares = measured.empty() ? std::span(kTypical) : measured;
  if (dim <= shares.front().dim) return shares.front().share;
  if (dim >= shares.back().dim) return shares.back().share;
  const auto above =
      std::ranges::find_if(shares, [&](const auto& s) { return s.dim >= dim; });
  const auto below = above - 1;
  // Even steps are doublings.
  const double t = std::log(dim / below->dim) /
                   std::log(static_cast<double>(above->dim) / below->dim);
  return below->share + t * (above->share - below->share);
}

double training_flops(
    const models::DecoderConfig& model,
    const ParameterCount& parameters,
    bool adapters,
    std::int64_t length
) {
  const double attention = 12.0 * model.layers * model.heads * model.head_dim *
                           static_cast<double>(length);
  const auto all = static_cast<double>(parameters.all - parameters.gathered);
  const auto trained = static_cast<double>(parameters.trained);
  return (adapters ? 4 * all + 2 * trained : 6 * all) + attention;
}

std::optional<double> step_seconds(
    const Plan& plan,
    const models::DecoderConfig& model,
    const PlanMachine& machine
) {
  if (machine.peak_gflops <= 0) return {};
  // A block that is computed again runs forward twice.
  const auto again = checkpointed_layers(plan.checkpointing, model.layers);
  const auto blocks = static_cast<double>(std::ranges::count(again, true));
  const double more = 1 + blocks / model.layers / 3;
  const double share = training_share(machine.training, model.dim);
  return plan.step_flops * more / (machine.peak_gflops * 1e9 * share);
}

}  // namespace hearth::train
