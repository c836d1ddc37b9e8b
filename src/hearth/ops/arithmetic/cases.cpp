// Sizes are {elements}.
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/gradient_home.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

OpCase base(std::string name, std::vector<std::string> primitives) {
  OpCase c;
  c.name = std::move(name);
  c.primitives = std::move(primitives);
  c.sizes = {{7}, {1}, {100}, {4099}, {100000}};
  c.bench_sizes = {Size{1 << 26}};
  c.float32 = {{1e-7, 1e-6}, {1e-7, 1e-6}};
  c.bfloat16 = {{1e-4, 8e-3}, {1e-4, 8e-3}};
  return c;
}

std::function<Work(const Size&, mx::Dtype)> arrays_moved(double count) {
  return [count](const Size& n, mx::Dtype t) {
    return Work{count * n[0] * double(mx::size_of(t)), double(n[0])};
  };
}

OpCase add_case() {
  OpCase c = base("add", {"Add"});
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{
        normal_input({n[0]}, t, seed), normal_input({n[0]}, t, seed + 1)
    };
  };
  c.run = [](const Arrays& v) { return Arrays{ops::add(v[0], v[1])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{add_reference(v[0], v[1])};
  };
  c.differentiable = {0, 1};
  c.forward_work = arrays_moved(3);
  return c;
}

OpCase scale_case() {
  OpCase c = base("scale", {"Scale"});
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{
        normal_input({n[0]}, t, seed),
        uniform_input({1}, at_least_float32(t), seed + 1, 0.5f, 2)
    };
  };
  c.run = [](const Arrays& v) { return Arrays{scale(v[0], v[1])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{scale_reference(v[0], v[1])};
  };
  c.differentiable = {0};
  c.forward_work = arrays_moved(2);
  return c;
}

// A float32 input of values that bfloat16 does not hold, and a bfloat16 one
// made wide: each cast in both directions.
OpCase cast_case() {
  OpCase c = base("cast", {"Cast"});
  c.dtypes = {mx::float32};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    auto fine =
        mx::multiply(normal_input({n[0]}, t, seed), mx::array(1.0009765625, t));
    return Arrays{fine, normal_input({n[0]}, mx::bfloat16, seed + 1)};
  };
  c.run = [](const Arrays& v) {
    return Arrays{cast(v[0], mx::bfloat16), cast(v[1], mx::float32)};
  };
  // Rounding is not differentiable, so float64 is where it is left out.
  c.reference = [](const Arrays& v) {
    if (v[0].dtype() == mx::float64) return Arrays{v[0], v[1]};
    return Arrays{
        mx::astype(v[0], mx::bfloat16), mx::astype(v[1], mx::float32)
    };
  };
  c.differentiable = {0};
  c.float32 = {{1e-6, 4e-3}, {1e-6, 4e-3}};
  c.forward_work = [](const Size& n, mx::Dtype) {
    return Work{12.0 * n[0], double(n[0])};
  };
  return c;
}

OpCase fork_case() {
  OpCase c = base("fork", {"Add", "Fork"});
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{normal_input({n[0]}, t, seed)};
  };
  c.run = [](const Arrays& v) { return fork(v[0], 2); };
  c.reference = [](const Arrays& v) { return fork_reference(v[0], 2); };
  c.differentiable = {0};
  c.gradient_work = arrays_moved(3);
  return c;
}

// The same with gradients that meet in a home. gradient_home_test.cpp has the
// rest.
OpCase share_case() {
  OpCase c = fork_case();
  c.name = "share";
  c.primitives = {"Settle", "Share"};
  c.dtypes = {mx::float32};
  c.has_gpu = false;  // a home is memory that only our kernels add to
  c.run = [](const Arrays& v) {
    const auto home = std::make_shared<GradientHome>(
        v[0].shape(), MemoryZone::named("gradients")
    );
    return share(v[0], 2, home);
  };
  return c;
}

// Within one step of bfloat16: up or down. op_test.cpp has the rest.
OpCase cast_stochastic_case() {
  OpCase c = base("cast_stochastic", {"Cast", "CastStochastic"});
  c.dtypes = {mx::float32};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return Arrays{
        mx::multiply(normal_input({n[0]}, t, seed), mx::array(1.0009765625, t))
    };
  };
  c.run = [](const Arrays& v) {
    return Arrays{cast_stochastic(v[0], RandomKey(5))};
  };
  c.reference = [](const Arrays& v) { return Arrays{v[0]}; };
  c.differentiable = {0};
  c.float32 = {{1e-6, 8e-3}, {1e-6, 4e-3}};
  c.forward_work = [](const Size& n, mx::Dtype) {
    return Work{6.0 * n[0], double(n[0])};
  };
  return c;
}

}  // namespace

std::vector<OpCase> arithmetic_cases() {
  return {add_case(),  scale_case(), cast_case(), cast_stochastic_case(),
          fork_case(), share_case()};
}

}  // namespace hearth::ops
