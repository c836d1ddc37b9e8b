#pragma once
// Learning rates by step.
#include "hearth/optim/optim_config.h"

namespace hearth::optim {

// Steps of warm-up out of total_steps.
long warmup_steps(const OptimConfig& config, long total_steps);

// The rate of the update that `step` updates came before, so step counts from
// 0. It rises by lr / warmup a step, the first update included, and is lr at
// the first step after the warm-up; from there it falls over the remaining
// steps and would reach min_lr at total_steps. Beyond that it stays.
double learning_rate(const OptimConfig& config, long step, long total_steps);

}  // namespace hearth::optim
