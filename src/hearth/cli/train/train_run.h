#pragma once
// One training run from a resolved recipe to its written model, with progress
// and notes on stderr.
#include "hearth/cli/command.h"
#include "hearth/train/loop/run_directory.h"
#include "hearth/train/loop/trainer.h"

namespace hearth::cli {

// In recipe.run.dir. Plans first: throws OutOfMemory when it cannot fit.
// Throws Interrupted, having saved, after Ctrl-C, and Error when it ends with a
// loss that is not finite.
train::TrainResult train_run(
    const Context& context,
    train::Recipe recipe,
    train::RunMode mode
);

// For people.
std::string loss_text(double loss);

}  // namespace hearth::cli
