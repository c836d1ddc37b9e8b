#pragma once
// A recipe's plan on this machine, or on one that a hardware profile tells of.
#include <string>

#include "hearth/cli/command.h"
#include "hearth/train/plan/planner.h"

namespace hearth::cli {

// This machine: train.memory or what is safe here, its threads, its measured
// peak where there is one.
train::PlanMachine this_machine(
    const train::Recipe& recipe,
    const Context& context
);
// What a profile's maker publishes, in place of measurements; its memory where
// the profile asks for so much.
train::PlanMachine profile_machine(
    const std::string& profile,
    const train::Recipe& recipe
);

// For people.
std::string plan_text(const train::Plan& plan, const train::Recipe& recipe);

}  // namespace hearth::cli
