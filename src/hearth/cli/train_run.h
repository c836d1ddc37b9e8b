#pragma once
// One training run from a resolved recipe to its written model, with progress
// and notes on stderr.
#include "hearth/cli/command.h"
#include "hearth/train/run_directory.h"
#include "hearth/train/trainer.h"

namespace hearth::cli {

// In recipe.run.dir. Plans first: throws OutOfMemory when it cannot fit.
// Throws Interrupted, having saved, after Ctrl-C.
train::TrainResult train_run(
    const Context& context,
    train::Recipe recipe,
    train::RunMode mode
);

}  // namespace hearth::cli
