#pragma once
// One training run from a resolved recipe to its written model, with progress
// and notes on stderr.
#include "hearth/cli/command.h"
#include "hearth/train/loop/run_directory.h"
#include "hearth/train/loop/trainer.h"

namespace hearth::cli {

// Trains in recipe.run.dir. Plans first and throws OutOfMemory when the run
// cannot fit. After Ctrl-C it saves and throws Interrupted; it throws Error
// when the run ends with a loss that is not finite.
train::TrainResult train_run(
    const Context& context,
    train::Recipe recipe,
    train::RunMode mode
);

// A loss as the terminal shows it.
std::string loss_text(double loss);

}  // namespace hearth::cli
