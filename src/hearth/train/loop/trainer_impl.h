#pragma once
// Shared by the parts of the trainer.
#include <memory>

#include "hearth/optim/optimizer.h"
#include "hearth/train/loop/session.h"

namespace hearth::train {

double seconds_now();
std::unique_ptr<optim::Optimizer> make_optimizer(const Session& session);

}  // namespace hearth::train
