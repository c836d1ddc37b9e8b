#pragma once
// The plan of a recipe on this machine, or on one that a hardware profile
// describes.
#include <string>

#include "hearth/cli/command.h"
#include "hearth/train/plan/planner.h"

namespace hearth::cli {

// What the planner must know of this machine: the memory budget (train.memory,
// or what is safe here), the threads, the measured peak where there is one.
train::PlanMachine this_machine(
    const train::Recipe& recipe,
    const Context& context
);
// The same of the machine a profile describes: the published peak in place of a
// measured one, and the memory the profile requires, if it requires any.
train::PlanMachine profile_machine(
    const std::string& profile,
    const train::Recipe& recipe
);

// The plan as text for the terminal.
std::string plan_text(const train::Plan& plan, const train::Recipe& recipe);

}  // namespace hearth::cli
