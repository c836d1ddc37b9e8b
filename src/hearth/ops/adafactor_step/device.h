#pragma once
// The Adafactor step as a graph; see optimizer_step/device.h.
#include "hearth/ops/adafactor_step/op.h"
#include "hearth/ops/optimizer_step/device.h"

namespace hearth::ops {

// {weight, rows, columns[, m]} -> the same after the step.
Arrays adafactor_device(
    const Adafactor& hyper,
    const StepScalars& scalars,
    const Arrays& before,
    const mx::array& gradient,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
