#pragma once
// The Adafactor step as a GPU runs it, a graph; see optimizer_step/gpu.h.
#include "hearth/ops/adafactor_step/op.h"
#include "hearth/ops/optimizer_step/gpu.h"

namespace hearth::ops {

// The states are rows, columns and, where beta1 is not 0, m.
Arrays adafactor_graph(const Adafactor& hyper, const GraphStep& step);

}  // namespace hearth::ops
