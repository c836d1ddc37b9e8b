// Optimiser steps as cases: inputs are the state before, outputs the state
// after the step. Sizes are {elements}.
#include <cmath>
#include <cstring>

#include "hearth/ops/leaf.h"
#include "hearth/ops/op_case.h"
#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {
namespace {

constexpr AdamW kAdamW{0.01f, 0.9f, 0.99f, 1e-8f, 0.1f};
constexpr Lion kLion{0.01f, 0.9f, 0.99f, 0.1f};
constexpr long kStep = 3;
constexpr float kGradientScale = 0.5f;

// A step changes leaves in place; the case's inputs must stay as they are.
mx::array leaf_copy(const mx::array& a) {
  auto source = mx::contiguous(a, false, mx::Device::cpu);
  source.eval();
  auto leaf =
      make_leaf(a.shape(), a.dtype(), MemoryZone::named("optimizer cases"));
  std::memcpy(leaf.data<char>(), source.data<char>(), source.nbytes());
  return leaf;
}

Parameter parameter(const Arrays& v) {
  return {
      .weight = leaf_copy(v[0]),
      .gradient = leaf_copy(v[1]),
      .gradient_scale = kGradientScale,
      .copy = leaf_copy(mx::astype(v[0], mx::bfloat16, mx::Device::cpu))
  };
}

// The arithmetic of the definitions, in the inputs' own dtype.
struct Plain {
  mx::Dtype dtype;
  mx::array number(double v) const { return mx::array(v, dtype); }
  mx::array mix(double beta, const mx::array& a, const mx::array& b) const {
    return mx::add(
        mx::multiply(number(beta), a), mx::multiply(number(1 - beta), b)
    );
  }
};

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

Arrays adamw_reference(const Arrays& v) {
  const Plain c{v[0].dtype()};
  const auto g =
      mx::multiply(mx::astype(v[1], c.dtype), c.number(double{kGradientScale}));
  const auto m = c.mix(double{kAdamW.beta1}, v[2], g);
  const auto s = c.mix(double{kAdamW.beta2}, v[3], mx::square(g));
  const double c1 = 1 - std::pow(double{kAdamW.beta1}, kStep);
  const double c2 = 1 - std::pow(double{kAdamW.beta2}, kStep);
  const auto down = mx::add(
      mx::sqrt(mx::divide(s, c.number(c2))), c.number(double{kAdamW.eps})
  );
  const auto update = mx::add(
      mx::divide(mx::divide(m, c.number(c1)), down),
      mx::multiply(c.number(double{kAdamW.decay}), v[0])
  );
  const auto w =
      mx::subtract(v[0], mx::multiply(c.number(double{kAdamW.lr}), update));
  return {w, m, s, w};
}

OpCase adamw_case() {
  OpCase c = base("adamw_step", "AdamW");
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return step_inputs(n, t, seed, true);
  };
  c.run = [](const Arrays& v) {
    const auto p = parameter(v);
    auto m = leaf_copy(v[2]), s = leaf_copy(v[3]);
    adamw_step(kAdamW, kStep, p, m, s);
    return Arrays{p.weight, m, s, *p.copy};
  };
  c.reference = adamw_reference;
  c.forward_work = step_work(8);
  c.timed = [inputs = c.inputs](const Size& n, mx::Dtype t) {
    const auto v = inputs(n, t, 1);
    return
        [p = parameter(v), m = leaf_copy(v[2]), s = leaf_copy(v[3])]() mutable {
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
    auto m = leaf_copy(v[2]);
    lion_step(kLion, p, m);
    return Arrays{p.weight, m, *p.copy};
  };
  c.reference = [](const Arrays& v) {
    const Plain plain{v[0].dtype()};
    const auto g = mx::multiply(
        mx::astype(v[1], plain.dtype), plain.number(double{kGradientScale})
    );
    const auto sign = mx::sign(plain.mix(double{kLion.beta1}, v[2], g));
    const auto update =
        mx::add(sign, mx::multiply(plain.number(double{kLion.decay}), v[0]));
    const auto w = mx::subtract(
        v[0], mx::multiply(plain.number(double{kLion.lr}), update)
    );
    return Arrays{w, plain.mix(double{kLion.beta2}, v[2], g), w};
  };
  c.forward_work = step_work(4);
  c.timed = [inputs = c.inputs](const Size& n, mx::Dtype t) {
    const auto v = inputs(n, t, 1);
    return [p = parameter(v), m = leaf_copy(v[2])]() mutable {
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
    auto update = leaf_copy(v[0]), m = leaf_copy(v[2]);
    momentum_step(0.95f, true, leaf_copy(v[1]), kGradientScale, m, update);
    return Arrays{update, m};
  };
  c.reference = [](const Arrays& v) {
    const Plain plain{v[0].dtype()};
    const auto mu = plain.number(double{0.95f});
    const auto g = mx::multiply(
        mx::astype(v[1], plain.dtype), plain.number(double{kGradientScale})
    );
    const auto m = mx::add(mx::multiply(mu, v[2]), g);
    return Arrays{mx::add(g, mx::multiply(mu, m)), m};
  };
  return c;
}

// What codes stand for, and the nearest code of a value.
mx::array expand(const mx::array& code, const mx::array& scale, bool fourth) {
  const int n = code.shape(0);
  const auto each =
      mx::slice(mx::repeat(scale, kernels::kStateBlock, 0), {0}, {n});
  const auto t = scale.dtype();
  const auto f =
      mx::divide(mx::astype(code, t), mx::array(fourth ? 255.0 : 127.0, t));
  const auto power =
      fourth ? mx::square(mx::square(f)) : mx::multiply(f, mx::abs(f));
  return mx::multiply(each, power);
}

// The weight after a step from 8-bit states; the states after it are in
// optimizer_step_test.cpp.
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
        leaf_copy(v[2]), leaf_copy(v[3]), leaf_copy(v[4]), leaf_copy(v[5])
    };
    adamw8_step(kAdamW, kStep, p, s);
    return Arrays{p.weight, *p.copy};
  };
  c.reference = [](const Arrays& v) {
    const auto all = adamw_reference(
        {v[0], v[1], expand(v[2], v[4], false), expand(v[3], v[5], true)}
    );
    return Arrays{all[0], all[3]};
  };
  c.forward_work = step_work(2);
  c.timed = [inputs = c.inputs](const Size& n, mx::Dtype t) {
    const auto v = inputs(n, t, 1);
    AdamW8State state{
        leaf_copy(v[2]), leaf_copy(v[3]), leaf_copy(v[4]), leaf_copy(v[5])
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
