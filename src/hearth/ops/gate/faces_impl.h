#pragma once
// The forms of gates between which op.cpp chooses. It has checked what they are
// given.
#include "hearth/ops/gate/op.h"

namespace hearth::ops {

// Where gate and value come from: there is none of the latter; they are the
// halves of one array's last dimension; they are arrays of their own.
enum class GateLayout { plain, halves, apart };

struct GateConfig {
  GateLayout layout;
  PartialGate form;
  bool has_alpha;
};

// Inputs: gate | gate_up | gate, value, each followed by alpha, float32, where
// it is.
mx::array gate_cpu(const GateConfig& c, Arrays in, mx::StreamOrDevice s);
mx::array gate_gpu(const GateConfig& c, const Arrays& in, mx::StreamOrDevice s);
mx::array gate_reference(
    const GateConfig& c,
    const Arrays& in,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
