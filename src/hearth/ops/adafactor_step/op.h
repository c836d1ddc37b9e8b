#pragma once
// The Adafactor step: AdamW's second moment kept as the means of the gradient's
// squares over rows and over columns, so that a matrix costs its edges. The
// same arithmetic as transformers' Adafactor.
#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {

struct Adafactor {
  float lr = 1e-3f;
  // The second moment forgets with 1 - step^decay_rate.
  float decay_rate = -0.8f;
  float eps = 1e-30f;          // added to the squared gradient
  float clip = 1.0f;           // the most the update's root mean square may be
  float beta1 = 0;             // of the update's running mean; 0 has none
  float decay = 0;             // of the weight, times lr
  bool scale_by_size = false;  // lr times the weight's root mean square,
  float least_size = 1e-3f;    // or this where it is less
};

// Means over rows and columns of each matrix (the last two dimensions), float32
// leaves. A parameter of fewer than two dimensions keeps a value an element in
// `columns` and has one row. m is there when beta1 is not 0.
struct AdafactorState {
  mx::array rows, columns;
  std::optional<mx::array> m;
};
// In the order of the members.
StateArrays adafactor_state(const mx::Shape& shape, bool momentum);
AdafactorState make_adafactor_state(
    const mx::Shape& shape,
    bool momentum,
    MemoryZone zone
);

// step counts from 1. The result does not depend on the number of threads.
void adafactor_step(
    const Adafactor& hyper,
    long step,
    const Parameter& p,
    AdafactorState& state
);

}  // namespace hearth::ops
