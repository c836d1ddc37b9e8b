#include "hearth/train/step/step.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hearth/base/clock.h"
#include "hearth/base/memory.h"
#include "hearth/ops/op.h"
#include "hearth/optim/clip.h"
#include "hearth/train/step/accumulator.h"
#include "hearth/train/step/device_step.h"

namespace hearth::train {
namespace {

// Gradients of one micro-batch after the other, evaluated, then an optimiser
// that goes parameter by parameter.
class EagerStep : public Step {
 public:
  EagerStep(const StepParts& parts, const StepConfig& config)
      : Step(config), parts_(parts) {}

  void send(const data::Batch& batch, const StepRequest& how) override {
    reset_memory_peak();
    mx::reset_peak_memory();
    set_gates(parts_.model, how.number);
    const double start = seconds_now();
    StepResult result;
    result.rows = std::min(how.rows, batch.rows);
    const Gradients g = gradients(batch, how, result);
    const double summed = seconds_now();
    // What the sums are divided by to be those of the mean loss.
    const double divisor = g.weight_sum * config_.loss_scale.scale();
    result.loss = g.loss_sum / g.weight_sum;
    result.weight = g.weight_sum;
    result.norm = optim::global_norm(g.arrays) / divisor;
    result.outcome = judge(result, how);
    if (result.outcome == StepOutcome::applied) {
      const double scale =
          optim::clip_factor(result.norm, config_.clip) / divisor;
      parts_.optimizer.step(g.arrays, static_cast<float>(scale), how.lr);
    }
    result.gradient_seconds = summed - start;
    result.update_seconds = seconds_now() - summed;
    result.peak = peak();
    made_ = result;
  }

  StepResult take() override { return std::exchange(made_, {}); }

 private:
  StepParts parts_;
  StepResult made_;

  Gradients gradients(
      const data::Batch& batch,
      const StepRequest& how,
      StepResult& result
  ) {
    AccumulateOptions options;
    options.compute = config_.compute;
    options.eval_interval = config_.eval_interval;
    options.loss_scale = config_.loss_scale.scale();
    if (config_.noise) {
      options.noise =
          config_.noise->fold(static_cast<std::uint64_t>(how.number));
    }
    options.shrunk = [&](auto from, auto to, const std::string& why) {
      result.shrunk = true;
      if (how.shrunk) how.shrunk(from, to, why);
    };
    make_room_for(std::uint64_t{result.rows} * batch.length);
    return accumulate(
        parts_.model, parts_.objective, batch, result.rows, options
    );
  }

  // float16 overflows on purpose, so that is looked at first.
  StepOutcome judge(const StepResult& result, const StepRequest& how) {
    if (result.weight <= 0) return StepOutcome::weightless;
    if (overflows(result.loss, result.norm)) return StepOutcome::overflowed;
    return how.limits.hold(result.loss, result.norm) ? StepOutcome::applied
                                                     : StepOutcome::refused;
  }

  // MLX's own ops, which float16 runs on, do not ask before they take memory,
  // so that what they took is seen only in MLX's own peak.
  std::size_t peak() const {
    const MemoryUsage usage = memory_usage();
    if (config_.compute != mx::float16) return usage.peak;
    return std::max(usage.peak, usage.own + mx::get_peak_memory());
  }
};

}  // namespace

bool StepLimits::hold(double mean_loss, double gradient_norm) const {
  return std::isfinite(mean_loss) && std::isfinite(gradient_norm) &&
         mean_loss <= loss && gradient_norm <= norm;
}

// Arrays of other numbers of tokens are of other sizes: those that are kept
// serve nobody and would stay beside the new ones.
void Step::make_room_for(std::uint64_t tokens) {
  if (std::exchange(kept_tokens_, tokens) != tokens) mx::clear_cache();
}

bool Step::overflows(double loss, double norm) {
  if (!std::isfinite(loss)) return false;
  const double before = config_.loss_scale.scale();
  if (config_.loss_scale.update(std::isfinite(norm))) return false;
  return config_.loss_scale.scale() != before;
}

std::unique_ptr<Step> make_step(
    const StepParts& parts,
    const StepConfig& config
) {
  if (!ops::on_cpu({})) return make_device_step(parts, config);
  return std::make_unique<EagerStep>(parts, config);
}

void set_gates(models::Decoder& model, std::int64_t step) {
  for (nn::Gate* gate : model.gates()) {
    gate->set_step(gate->config().step + step);
  }
}

}  // namespace hearth::train
