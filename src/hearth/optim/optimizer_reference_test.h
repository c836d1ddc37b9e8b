#pragma once
// Optimisers written out in plain double arithmetic, for tests to compare
// with. They share nothing with the kernels.
#include <functional>
#include <vector>

#include "hearth/nn/parameter_set.h"
#include "hearth/optim/optim_config.h"

namespace hearth::optim {

// Updates weights by one step; step counts from 1. Keeps its own state.
using ReferenceRule = std::function<void(
    std::vector<double>& weights,
    const std::vector<double>& gradient,
    long step,
    double lr,
    double decay
)>;

// 8-bit AdamW is compared with plain AdamW.
ReferenceRule reference_rule(const OptimConfig& config, const nn::Weight& p);

}  // namespace hearth::optim
