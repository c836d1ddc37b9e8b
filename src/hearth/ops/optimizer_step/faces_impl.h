#pragma once
// The two forms that op.h's steps choose among: our kernels (cpu.cpp) and the
// graphs of device.h run in place (gpu.cpp). The states' sizes are checked
// already; each checks the parameter.
#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {

void adamw_step_kernels(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
);
void adamw8_step_kernels(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    AdamW8State& s
);
void lion_step_kernels(const Lion& h, const Parameter& p, mx::array& m);
void momentum_step_kernels(
    float mu,
    bool nesterov,
    const mx::array& gradient,
    float gradient_scale,
    mx::array& m,
    mx::array& update
);

void adamw_step_gpu(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    mx::array& m,
    mx::array& v
);
void adamw8_step_gpu(
    const AdamW& hyper,
    long step,
    const Parameter& p,
    AdamW8State& s
);
void lion_step_gpu(const Lion& h, const Parameter& p, mx::array& m);
void momentum_step_gpu(
    float mu,
    bool nesterov,
    const mx::array& gradient,
    float gradient_scale,
    mx::array& m,
    mx::array& update
);

}  // namespace hearth::ops
