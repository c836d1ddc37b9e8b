#pragma once
// What a run is not trained on, told before its first step.
#include "hearth/cli/command.h"
#include "hearth/train/loop/session.h"

namespace hearth::cli {

// Lines that were skipped, documents that are cut or carry no loss, a held-out
// split that is empty: warnings where data is lost, else notes.
void tell_data(const train::Session& session, const Context& context);

}  // namespace hearth::cli
