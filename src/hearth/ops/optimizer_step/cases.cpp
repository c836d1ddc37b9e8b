// Optimiser steps as cases: inputs are the state before, outputs the state
// after the step. Sizes are {elements}.
#include "hearth/ops/op_case.h"
#include "hearth/ops/optimizer_step/faces_impl.h"

namespace hearth::ops {
namespace {

constexpr AdamW kAdamW{0.01f, 0.9f, 0.99f, 1e-8f, 0.1f};
constexpr Lion kLion{0.01f, 0.9f, 0.99f, 0.1f};
constexpr long kStep = 3;
constexpr float kGradientScale = 0.5f;

Parameter parameter(const Arrays& v) {
  return {
      .weight = leaf_input(v[0]),
      .gradient = leaf_input(v[1]),
      .gradient_scale = kGradientScale,
      .copy = leaf_input(mx::astype(v[0], mx::bfloat16, mx::Device::cpu))
  };
}

PlainStep plain_step(const Arrays& v, Arrays before) {
  return {std::move(before), v[1], double{kGradientScale}, kStep};
}

OpCase base(std::string name, std::string zone) {
  OpCase c;
  c.name = std::move(name);
  c.primitives = {std::move(zone)};
  c.sizes = {{7}, {1}, {300}, {4099}, {100000}};
  c.bench_sizes = {Size{1 << 26}};
  c.float32 = {{1e-6, 4e-3}, {}};
  c.bfloat16 = {{1e-6, 4e-3}, {}};
  c.allocates = false;
  return c;
}

// weight, gradient of the case's dtype, and states of 0.5 and up where they
// are divided by.
Arrays step_inputs(
    const Size& n,
    mx::Dtype t,
    std::uint64_t seed,
    bool second_moment
) {
  const auto full = at_least_float32(t);
  Arrays in{
      normal_input({n[0]}, full, seed), normal_input({n[0]}, t, seed + 1),
      normal_input({n[0]}, full, seed + 2)
  };
  if (second_moment) {
    in.push_back(uniform_input({n[0]}, full, seed + 3, 0.5f, 2));
  }
  return in;
}

// Bytes a weight: gradient and state read, state and both weights written.
std::function<Work(const Size&, mx::Dtype)> step_work(double state_bytes) {
  return [state_bytes](const Size& n, mx::Dtype t) {
    const double each = double(mx::size_of(t)) + 2 * state_bytes + 4 + 4 + 2;
    return Work{each * n[0], 15.0 * n[0]};
  };
}

OpCase adamw_case() {
  OpCase c = base("adamw_step", "AdamW");
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return step_inputs(n, t, seed, true);
  };
  c.run = [](const Arrays& v) {
    const auto p = parameter(v);
    auto m = leaf_input(v[2]), s = leaf_input(v[3]);
    adamw_step(kAdamW, kStep, p, m, s);
    return Arrays{p.weight, m, s, *p.copy};
  };
  c.reference = [](const Arrays& v) {
    auto out = adamw_step_reference(kAdamW, plain_step(v, {v[0], v[2], v[3]}));
    out.push_back(out[0]);
    return out;
  };
  c.forward_work = step_work(8);
  c.timed = [inputs = c.inputs](const Size& n, mx::Dtype t) {
    const auto v = inputs(n, t, 1);
    return [p = parameter(v), m = leaf_input(v[2]),
            s = leaf_input(v[3])]() mutable {
      adamw_step(kAdamW, kStep, p, m, s);
    };
  };
  return c;
}

OpCase lion_case() {
  OpCase c = base("lion_step", "Lion");
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return step_inputs(n, t, seed, false);
  };
  c.run = [](const Arrays& v) {
    const auto p = parameter(v);
    auto m = leaf_input(v[2]);
    lion_step(kLion, p, m);
    return Arrays{p.weight, m, *p.copy};
  };
  c.reference = [](const Arrays& v) {
    auto out = lion_step_reference(kLion, plain_step(v, {v[0], v[2]}));
    out.push_back(out[0]);
    return out;
  };
  c.forward_work = step_work(4);
  c.timed = [inputs = c.inputs](const Size& n, mx::Dtype t) {
    const auto v = inputs(n, t, 1);
    return [p = parameter(v), m = leaf_input(v[2])]() mutable {
      lion_step(kLion, p, m);
    };
  };
  // MLX's sign of NaN is 0; ours is NaN, so that a broken step shows.
  c.check_special_values = false;
  return c;
}

OpCase momentum_case() {
  OpCase c = base("momentum_step", "Momentum");
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return step_inputs(n, t, seed, false);
  };
  c.run = [](const Arrays& v) {
    auto update = leaf_input(v[0]), m = leaf_input(v[2]);
    momentum_step(0.95f, true, leaf_input(v[1]), kGradientScale, m, update);
    return Arrays{update, m};
  };
  c.reference = [](const Arrays& v) {
    return momentum_step_reference(0.95f, true, plain_step(v, {v[2]}));
  };
  return c;
}

// The weight after a step from 8-bit states; op_test.cpp looks at the states
// after it.
OpCase adamw8_case() {
  OpCase c = base("adamw8_step", "AdamW8");
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    auto in = step_inputs(n, t, seed, false);
    const int blocks = (n[0] + 255) / 256;
    const auto full = at_least_float32(t);
    in[2] = mx::astype(
        mx::subtract(integer_input({n[0]}, 255, seed + 2), mx::array(127)),
        mx::int8, mx::Device::cpu
    );
    in.push_back(
        mx::astype(
            mx::add(integer_input({n[0]}, 200, seed + 3), mx::array(50)),
            mx::uint8, mx::Device::cpu
        )
    );
    in.push_back(uniform_input({blocks}, full, seed + 4, 0.5f, 2));
    in.push_back(uniform_input({blocks}, full, seed + 5, 0.5f, 2));
    return in;
  };
  c.run = [](const Arrays& v) {
    const auto p = parameter(v);
    AdamW8State s{
        leaf_input(v[2]), leaf_input(v[3]), leaf_input(v[4]), leaf_input(v[5])
    };
    adamw8_step(kAdamW, kStep, p, s);
    return Arrays{p.weight, *p.copy};
  };
  c.reference = [](const Arrays& v) {
    const auto w = adamw8_step_reference(
        kAdamW, plain_step(v, {v[0], v[2], v[3], v[4], v[5]})
    )[0];
    return Arrays{w, w};
  };
  c.forward_work = step_work(2);
  c.timed = [inputs = c.inputs](const Size& n, mx::Dtype t) {
    const auto v = inputs(n, t, 1);
    AdamW8State state{
        leaf_input(v[2]), leaf_input(v[3]), leaf_input(v[4]), leaf_input(v[5])
    };
    return [p = parameter(v), s = std::move(state)]() mutable {
      adamw8_step(kAdamW, kStep, p, s);
    };
  };
  return c;
}

}  // namespace

std::vector<OpCase> optimizer_cases() {
  return {adamw_case(), adamw8_case(), lion_case(), momentum_case()};
}

}  // namespace hearth::ops
