#pragma once
// The step as a GPU runs it: two compiled functions. One makes the gradients of
// a micro-batch and adds them up; the other takes their norm, decides whether
// the step is fit to be applied, and moves weights and optimiser state into the
// memory of the old ones. The host reads nothing in between, so it can send the
// next step while the GPU is at this one: launches are hidden that way.
//
// What must lie in memory at once is found out, not guessed: the first step of
// a shape lets nothing run ahead and shows its peak. MLX frees nothing that the
// GPU has not finished, so later steps may have a little more than that under
// way and wait where they would take more.
#include "hearth/train/step/step.h"

namespace hearth::train {

std::unique_ptr<Step> make_device_step(
    const StepParts& parts,
    const StepConfig& config
);

}  // namespace hearth::train
