#pragma once
// A session's optimiser and its step, as the recipe has them.
#include <memory>

#include "hearth/train/loop/session.h"
#include "hearth/train/step/step.h"

namespace hearth::train {

std::unique_ptr<optim::Optimizer> make_optimizer(const Session& session);

// What the random numbers of a pass are keyed by; absent where it draws none.
std::optional<RandomKey> noise_of(
    const Recipe& recipe,
    const Objective& objective
);

// `in_place`, where given, is minimised in place of the session's objective.
// Session, optimiser and objective must outlive the step.
std::unique_ptr<Step> make_step(
    Session& session,
    optim::Optimizer& optimizer,
    const Objective* in_place = nullptr
);

}  // namespace hearth::train
