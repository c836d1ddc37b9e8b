#include "hearth/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::optim {
namespace {

// How far `step` is from `begin` to `end`, in [0, 1].
double progress(long step, long begin, long end) {
  const double length = static_cast<double>(std::max(1L, end - begin));
  return std::clamp(static_cast<double>(step - begin) / length, 0.0, 1.0);
}

// What is left of the rate after the warm-up, from 1 to 0.
double shape(const OptimConfig& c, long step, long warmup, long total) {
  if (c.schedule == "constant") return 1;
  if (c.schedule == "linear") return 1 - progress(step, warmup, total);
  if (c.schedule == "cosine") {
    return (1 + std::cos(std::numbers::pi * progress(step, warmup, total))) / 2;
  }
  if (c.schedule == "wsd") {
    const auto decay =
        std::llround(c.decay_fraction * static_cast<double>(total));
    return 1 - progress(step, std::max<long>(warmup, total - decay), total);
  }
  throw UsageError(
      fmt::format(
          "[optim.schedule] must be constant, linear, cosine or wsd, got {}",
          c.schedule
      )
  );
}

}  // namespace

long warmup_steps(const OptimConfig& config, long total_steps) {
  const double steps = config.warmup < 1
                           ? config.warmup * static_cast<double>(total_steps)
                           : config.warmup;
  // 10 % of 30 steps is 3, whatever 0.1 is in binary.
  return static_cast<long>(std::ceil(steps - 1e-9));
}

double learning_rate(const OptimConfig& config, long step, long total_steps) {
  if (step < 0 || total_steps < 1) {
    throw UsageError(
        fmt::format(
            "[optim.learning_rate] step must be at least 0 of at least 1, got "
            "{} of {}",
            step, total_steps
        )
    );
  }
  const long warmup = warmup_steps(config, total_steps);
  if (step < warmup) {
    return config.lr * static_cast<double>(step + 1) /
           static_cast<double>(warmup);
  }
  const double left = shape(config, step, warmup, total_steps);
  return config.lr * (config.min_lr + (1 - config.min_lr) * left);
}

}  // namespace hearth::optim
