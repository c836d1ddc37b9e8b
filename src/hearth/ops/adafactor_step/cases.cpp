// Adafactor as a case: the state before the step in, the state after it out.
// Sizes are {rows, columns}.
#include "hearth/ops/adafactor_step/faces_impl.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

constexpr Adafactor kHyper{.lr = 0.01f, .clip = 0.5f, .decay = 0.1f};
constexpr long kStep = 3;
constexpr float kGradientScale = 0.5f;

struct Problem {
  Parameter p;
  AdafactorState state;
};

Problem problem(const Arrays& v) {
  return {
      {.weight = leaf_input(v[0]),
       .gradient = leaf_input(v[1]),
       .gradient_scale = kGradientScale,
       .copy = leaf_input(mx::astype(v[0], mx::bfloat16, mx::Device::cpu))},
      {leaf_input(v[2]), leaf_input(v[3]), {}}
  };
}

}  // namespace

std::vector<OpCase> adafactor_cases() {
  OpCase c;
  c.name = "adafactor_step";
  c.primitives = {"Adafactor"};
  c.sizes = {{3, 7}, {1, 1}, {5, 300}, {700, 33}};
  c.bench_sizes = {{16384, 4096}};
  c.float32 = {{1e-6, 4e-3}, {}};
  c.bfloat16 = {{1e-6, 4e-3}, {}};
  c.allocates = false;
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    const auto full = at_least_float32(t);
    return Arrays{
        normal_input({n[0], n[1]}, full, seed),
        normal_input({n[0], n[1]}, t, seed + 1),
        uniform_input({n[0]}, full, seed + 2, 0.5f, 2),
        uniform_input({n[1]}, full, seed + 3, 0.5f, 2)
    };
  };
  c.run = [](const Arrays& v) {
    auto [p, state] = problem(v);
    adafactor_step(kHyper, kStep, p, state);
    return Arrays{p.weight, state.rows, state.columns, *p.copy};
  };
  c.reference = [](const Arrays& v) {
    auto out = adafactor_step_reference(
        kHyper, {{v[0], v[2], v[3]}, v[1], double{kGradientScale}, kStep}
    );
    out.push_back(out[0]);
    return out;
  };
  // The gradient is read three times: squares, size, update.
  c.forward_work = [](const Size& n, mx::Dtype t) {
    const double all = double(n[0]) * n[1];
    return Work{all * (3 * double(mx::size_of(t)) + 4 + 4 + 2), 12 * all};
  };
  c.timed = [inputs = c.inputs](const Size& n, mx::Dtype t) {
    return [p = problem(inputs(n, t, 1))]() mutable {
      adafactor_step(kHyper, kStep, p.p, p.state);
    };
  };
  return {c};
}

}  // namespace hearth::ops
