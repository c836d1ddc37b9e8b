// Adafactor as a case: the state before the step in, the state after it out.
// Sizes are {rows, columns}.
#include <cmath>
#include <cstring>

#include "hearth/ops/adafactor_step/op.h"
#include "hearth/ops/leaf.h"
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

mx::array leaf_copy(const mx::array& a) {
  auto source = mx::contiguous(a, false, mx::Device::cpu);
  source.eval();
  auto leaf =
      make_leaf(a.shape(), a.dtype(), MemoryZone::named("adafactor cases"));
  std::memcpy(leaf.data<char>(), source.data<char>(), source.nbytes());
  return leaf;
}

Problem problem(const Arrays& v) {
  return {
      {.weight = leaf_copy(v[0]),
       .gradient = leaf_copy(v[1]),
       .gradient_scale = kGradientScale,
       .copy = leaf_copy(mx::astype(v[0], mx::bfloat16, mx::Device::cpu))},
      {leaf_copy(v[2]), leaf_copy(v[3]), {}}
  };
}

Arrays reference(const Arrays& v) {
  const auto t = v[0].dtype();
  const auto number = [t](double x) { return mx::array(x, t); };
  const double beta = 1 - std::pow(double(kStep), double{kHyper.decay_rate});
  const auto mix = [&](const mx::array& old, const mx::array& now) {
    return mx::add(
        mx::multiply(number(beta), old), mx::multiply(number(1 - beta), now)
    );
  };
  const auto g =
      mx::multiply(mx::astype(v[1], t), number(double{kGradientScale}));
  const auto square = mx::square(g);
  const auto rows = mix(v[2], mx::mean(square, 1));
  const auto columns = mix(v[3], mx::mean(square, 0));
  const auto row_factor =
      mx::expand_dims(mx::sqrt(mx::divide(mx::mean(rows), rows)), 1);
  const auto update =
      mx::multiply(g, mx::multiply(row_factor, mx::rsqrt(columns)));
  const auto size = mx::sqrt(mx::mean(mx::square(update)));
  const auto clip =
      mx::maximum(number(1), mx::divide(size, number(double{kHyper.clip})));
  const double lr = double{kHyper.lr};
  const auto w = mx::subtract(
      mx::multiply(v[0], number(1 - lr * double{kHyper.decay})),
      mx::divide(mx::multiply(number(lr), update), clip)
  );
  return {w, rows, columns, w};
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
  c.reference = reference;
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
