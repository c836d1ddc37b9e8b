// Sizes are {rows, dim}.
#include "hearth/ops/gate/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

double elements(const Size& n) {
  return double(n[0]) * n[1];
}

Work moved(const Size& n, mx::Dtype t, double arrays, double flops) {
  return {arrays * elements(n) * double(mx::size_of(t)), flops * elements(n)};
}

OpCase base(std::string name) {
  OpCase c;
  c.name = std::move(name);
  c.primitives = {"Gate", "GateGrad"};
  c.sizes = {{3, 7}, {1, 1}, {5, 33}, {130, 100}, {300, 768}};
  c.bench_sizes = {{32768, 2048}};
  c.float32 = {{2e-6, 4e-6}, {4e-6, 1e-5}};
  c.bfloat16 = {{1e-3, 8e-3}, {2e-3, 8e-3}};
  return c;
}

// erf and logaddexp are of single precision in MLX.
void loosen_differences(OpCase& c, Activation act) {
  if (act != Activation::gelu && act != Activation::mish) return;
  c.gradient_step = 5e-3;
  c.gradient_tolerance = 1e-4;
}

OpCase plain(Activation act) {
  OpCase c = base("activate_" + std::string(name_of(act)));
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{normal_input({n[0], n[1]}, t, seed, 3)};
  };
  c.run = [act](const Arrays& v) { return Arrays{activate(v[0], act)}; };
  c.reference = [act](const Arrays& v) {
    return Arrays{activate_reference(v[0], act)};
  };
  c.differentiable = {0};
  loosen_differences(c, act);
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return moved(n, t, 2, 20);
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return moved(n, t, 3, 25);
  };
  return c;
}

Arrays pair(const Size& n, mx::Dtype t, std::uint64_t seed) {
  return {
      normal_input({n[0], n[1]}, t, seed, 3),
      normal_input({n[0], n[1]}, t, seed + 1)
  };
}

void gated_work(OpCase& c) {
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return moved(n, t, 3, 21);
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return moved(n, t, 5, 28);
  };
}

OpCase partial(std::string name, PartialGate form) {
  OpCase c = base(std::move(name));
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    auto in = pair(n, t, seed);
    in.push_back(uniform_input({1}, at_least_float32(t), seed + 2, 0.2f, 0.8f));
    return in;
  };
  c.run = [form](const Arrays& v) {
    return Arrays{partial_gate(v[1], v[0], v[2], form)};
  };
  c.reference = [form](const Arrays& v) {
    return Arrays{partial_gate_reference(v[1], v[0], v[2], form)};
  };
  c.differentiable = {0, 1, 2};
  loosen_differences(c, form.act);
  // alpha's gradient is a sum over every element.
  c.float32.gradient = {1e-3, 2e-5};
  c.bfloat16.gradient = {2e-2, 1e-2};
  gated_work(c);
  return c;
}

}  // namespace

std::vector<OpCase> activation_cases() {
  std::vector<OpCase> out;
  for (int i = 0; i < kernels::kActivations; ++i) {
    out.push_back(plain(static_cast<Activation>(i)));
  }
  return out;
}

std::vector<OpCase> gate_cases() {
  OpCase swiglu = base("gated_mlp_activation");
  swiglu.inputs = pair;
  swiglu.run = [](const Arrays& v) {
    return Arrays{gated_mlp_activation(v[0], v[1], Activation::silu)};
  };
  swiglu.reference = [](const Arrays& v) {
    const auto one = mx::array(1, v[0].dtype());
    return Arrays{partial_gate_reference(v[1], v[0], one, {Activation::silu})};
  };
  swiglu.differentiable = {0, 1};
  gated_work(swiglu);

  OpCase halves = base("gated_mlp_activation_halves");
  halves.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{normal_input({n[0], 2 * n[1]}, t, seed, 2)};
  };
  halves.run = [](const Arrays& v) {
    return Arrays{gated_mlp_activation(v[0], Activation::gelu_tanh)};
  };
  halves.reference = [](const Arrays& v) {
    const auto half = mx::split(v[0], 2, -1);
    const auto one = mx::array(1, v[0].dtype());
    return Arrays{
        partial_gate_reference(half[1], half[0], one, {Activation::gelu_tanh})
    };
  };
  halves.differentiable = {0};
  gated_work(halves);
  return {
      std::move(swiglu),
      std::move(halves),
      partial("partial_gate_glu", {Activation::sigmoid}),
      partial("partial_gate_gtu", {Activation::tanh, true}),
      partial("partial_gate_swish", {Activation::silu, false, 1.7f}),
      partial("partial_gate_mish", {Activation::mish})
  };
}

}  // namespace hearth::ops
