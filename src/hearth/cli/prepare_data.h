#pragma once
// Preparing a recipe's data with a progress line a step; Ctrl-C stops it with
// what is done kept.
#include "hearth/cli/command.h"
#include "hearth/data/prepared_data.h"

namespace hearth::cli {

data::PreparedData prepare_with_progress(
    const Context& context,
    const data::DataConfig& config,
    bool force = false
);

}  // namespace hearth::cli
