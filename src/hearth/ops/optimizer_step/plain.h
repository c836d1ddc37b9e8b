#pragma once
// Optimiser steps in MLX's own ops, as a GPU runs them: the leaves take the
// memory of the results, so that whoever holds one sees them. They return when
// the work is sent; what the same stream is sent later comes after it, and
// mx::synchronize() waits for it.
#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {

void plain_adamw_step(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
);
void plain_lion_step(const Lion& hyper, const Parameter& p, mx::array& m);

}  // namespace hearth::ops
