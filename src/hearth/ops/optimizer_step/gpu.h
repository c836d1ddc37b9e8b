#pragma once
// Optimiser steps as a GPU runs them, as graphs: arrays before the step in,
// arrays after it out. Nothing is evaluated and nothing is decided from
// numbers, so a device may run the steps of all parameters as one compiled
// function that takes the memory of what it is given. The arithmetic is that of
// op.h's steps, in float32.
#include <span>

#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {

// What changes from one step to the next: float32 arrays without dimensions,
// which a compiled function reads where it would hold numbers for ever.
struct StepScalars {
  mx::array learning_rate;
  mx::array gradient_scale;  // 1/tokens, clipping, loss scale
  // 1 / (1 - beta^step), for AdamW's two moments.
  mx::array correction1, correction2;
  // step^decay_rate: how much of Adafactor's means is new.
  mx::array fresh;
  // Whether the step is to be applied, which a device may find out by itself.
  // Where it is false, and learning rate and gradient scale are 0, all arrays
  // come out as they went in. Absent: it is.
  std::optional<mx::array> fit = {};

  // In the order above without the last, as a compiled function takes and finds
  // them.
  static constexpr std::size_t kCount = 5;
  Arrays arrays() const;
  static StepScalars of(std::span<const mx::array> arrays);
};

// What is worked out of the step's number, in double; step counts from 1.
struct StepNumbers {
  double learning_rate = 1e-3, gradient_scale = 1;
  double beta1 = 0.9, beta2 = 0.999;
  double decay_rate = -0.8;  // Adafactor's
  long step = 1;
};
StepScalars step_scalars(const StepNumbers& numbers);

// What a step is made of besides its hyperparameters, whose own lr is not read.
struct GraphStep {
  Arrays before;       // the weight, then the states
  mx::array gradient;  // float32 or bfloat16, of the weight's shape
  StepScalars scalars;
  mx::StreamOrDevice s = {};
};

// Arrays after a step, or those before it where the step was not fit.
Arrays kept(const GraphStep& step, Arrays after);

// Each gives back the weight and the states after the step, as they came.
Arrays adamw_graph(const AdamW& hyper, const GraphStep& step);  // weight, m, v
// The states are AdamW8State's arrays, code for code as the kernels have them:
// weight, m, v, m's scales, v's scales.
Arrays adamw8_graph(const AdamW& hyper, const GraphStep& step);
Arrays lion_graph(const Lion& hyper, const GraphStep& step);  // weight, m

struct Muon {
  float momentum = 0.95f;
  bool nesterov = true;
  int steps = 5;     // of the iteration
  float rms = 0.2f;  // of the update's elements, times the learning rate
  float decay = 0.1f;
  mx::Dtype compute = mx::bfloat16;  // of the iteration's products
};
// weight (a matrix), m
Arrays muon_graph(const Muon& hyper, const GraphStep& step);
// Muon's first part: the update to orthogonalise, and m.
Arrays momentum_graph(
    float mu,
    bool nesterov,
    const mx::array& m,
    const mx::array& gradient,
    const mx::array& gradient_scale,
    mx::StreamOrDevice s = {}
);

// Runs such a step where nobody has compiled one: evaluates `after` and gives
// its memory to the arrays before, so that whoever holds one sees it, and
// refreshes the parameter's bfloat16 copy. It returns when the work is sent.
// Throws UsageError for a parameter with a packed companion: that is a CPU's.
void run_in_place(
    const char* name,
    const Parameter& p,
    const Arrays& before,
    const Arrays& after
);

}  // namespace hearth::ops
