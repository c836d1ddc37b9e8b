// An Adafactor step on a GPU, outside of a compiled step.
#include "hearth/ops/adafactor_step/device.h"
#include "hearth/ops/adafactor_step/faces_impl.h"

namespace hearth::ops {

void adafactor_step_gpu(
    const Adafactor& hyper,
    long step,
    const Parameter& p,
    AdafactorState& s
) {
  Arrays before{p.weight, s.rows, s.columns};
  if (s.m) before.push_back(*s.m);
  const auto scalars = step_scalars(
      {.learning_rate = double{hyper.lr},
       .gradient_scale = double{p.gradient_scale},
       .decay_rate = double{hyper.decay_rate},
       .step = step}
  );
  run_in_place(
      "Adafactor", p, before,
      adafactor_device(hyper, scalars, before, p.gradient)
  );
}

}  // namespace hearth::ops
