#pragma once
// The forms of op.h's steps: our kernels (cpu.cpp) and the graphs of gpu.h run
// in place (gpu_in_place.cpp), between which op.cpp chooses; each has the
// signature of its step. The states' sizes are checked already, and each form
// checks the parameter. Last the definitions (reference.cpp).
#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {

decltype(adamw_step) adamw_step_cpu;
decltype(adamw8_step) adamw8_step_cpu;
decltype(lion_step) lion_step_cpu;
decltype(momentum_step) momentum_step_cpu;

decltype(adamw_step) adamw_step_gpu;
decltype(adamw8_step) adamw8_step_gpu;
decltype(lion_step) lion_step_gpu;
decltype(momentum_step) momentum_step_gpu;

// What the definition of a step is given besides its hyperparameters. It
// computes in the weight's own dtype.
struct PlainStep {
  Arrays before;  // the weight, then the states
  mx::array gradient;
  double gradient_scale = 1;
  long step = 1;
};
// Each gives the weight and the states after the step.
Arrays adamw_step_reference(const AdamW& hyper, const PlainStep& step);
Arrays lion_step_reference(const Lion& hyper, const PlainStep& step);
// The states before are AdamW8State's arrays; those after are the moments
// themselves, not rounded to codes.
Arrays adamw8_step_reference(const AdamW& hyper, const PlainStep& step);
// before holds m alone; the update to orthogonalise, and m.
Arrays momentum_step_reference(float mu, bool nesterov, const PlainStep& step);

}  // namespace hearth::ops
