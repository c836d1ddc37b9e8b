#pragma once
// How long a step will take: its arithmetic over what the machine does of it.
#include <optional>
#include <span>

#include "hearth/hardware/peaks.h"
#include "hearth/train/plan/planner.h"

namespace hearth::train {

// The share of peak of a model that wide, between those that were measured;
// without any, what is typical.
double training_share(
    std::span<const hardware::TrainingShare> measured,
    double dim
);

// Nothing without the machine's peak.
std::optional<double> step_seconds(
    const Plan& plan,
    const models::DecoderConfig& model,
    const PlanMachine& machine
);

}  // namespace hearth::train
