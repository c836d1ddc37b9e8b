// Sizes are {rows, dim}.
#include "hearth/ops/norm/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

constexpr float kEps = 1e-5f;

double elements(const Size& n) {
  return double(n[0]) * n[1];
}

OpCase base(const char* name) {
  OpCase c;
  c.name = name;
  c.primitives = {"Norm", "NormGrad"};
  c.sizes = {{3, 7}, {1, 1}, {5, 33}, {130, 100}, {300, 768}};
  c.bench_sizes = {{65536, 1024}};
  c.float32 = {{2e-6, 4e-6}, {2e-5, 2e-5}};
  c.bfloat16 = {{1e-3, 8e-3}, {2e-2, 1.2e-2}};
  // What MLX's fused kernels round once, its graph on a CPU rounds after each
  // step, and it adds the weight's gradient up in bfloat16, element after
  // element. gpu_test.cpp holds x's gradient alone to more.
  c.gpu_float32 = {{6e-6, 4e-6}, {2e-5, 2e-5}};
  c.gpu_bfloat16 = {{1e-2, 1.6e-2}, {1.5e-1, 2e-2}};
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{2 * elements(n) * double(mx::size_of(t)), 5 * elements(n)};
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return Work{3 * elements(n) * double(mx::size_of(t)), 12 * elements(n)};
  };
  return c;
}

// x and, in full precision, weight and bias.
Arrays norm_inputs(const Size& n, mx::Dtype t, std::uint64_t seed, bool bias) {
  const auto full = at_least_float32(t);
  Arrays in{
      normal_input({n[0], n[1]}, t, seed),
      uniform_input({n[1]}, full, seed + 1, 0.5f, 1.5f)
  };
  if (bias) in.push_back(normal_input({n[1]}, full, seed + 2));
  return in;
}

// A float32 stream, and a branch of the case's dtype after it.
Arrays add_inputs(const Size& n, mx::Dtype t, std::uint64_t seed, bool bias) {
  auto in = norm_inputs(n, at_least_float32(t), seed, bias);
  in.insert(in.begin() + 1, normal_input({n[0], n[1]}, t, seed + 3));
  return in;
}

// The stream is read and written in float32, the branch in its own dtype.
void add_work(OpCase& c) {
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{
        elements(n) * (8 + 2 * double(mx::size_of(t))), 6 * elements(n)
    };
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    const double dr = t == mx::float32 ? 0 : 1;
    return Work{
        elements(n) * (12 + (1 + dr) * double(mx::size_of(t))), 13 * elements(n)
    };
  };
}

OpCase rms_norm_case() {
  OpCase c = base("rms_norm");
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return norm_inputs(n, t, seed, false);
  };
  c.run = [](const Arrays& v) { return Arrays{rms_norm(v[0], v[1], kEps)}; };
  c.reference = [](const Arrays& v) {
    return Arrays{rms_norm_reference(v[0], v[1], kEps, v[0].dtype())};
  };
  c.differentiable = {0, 1};
  return c;
}

OpCase layer_norm_case() {
  OpCase c = base("layer_norm");
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return norm_inputs(n, t, seed, true);
  };
  c.run = [](const Arrays& v) {
    return Arrays{layer_norm(v[0], v[1], v[2], kEps)};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{layer_norm_reference(v[0], v[1], v[2], kEps, v[0].dtype())};
  };
  c.differentiable = {0, 1, 2};
  // The product with w is rounded before b is added: up to 2^-9 of 4.
  c.gpu_bfloat16->value.absolute = 2e-2;
  return c;
}

OpCase add_rms_norm_case() {
  OpCase c = base("add_rms_norm");
  add_work(c);
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return add_inputs(n, t, seed, false);
  };
  c.run = [](const Arrays& v) {
    const auto [h, y] = add_rms_norm(v[0], v[1], v[2], kEps);
    return Arrays{h, y};
  };
  c.reference = [](const Arrays& v) {
    const auto h = mx::add(v[0], mx::astype(v[1], v[0].dtype()));
    return Arrays{h, rms_norm_reference(h, v[2], kEps, v[1].dtype())};
  };
  c.differentiable = {0, 1, 2};
  return c;
}

OpCase add_layer_norm_case() {
  OpCase c = base("add_layer_norm");
  add_work(c);
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return add_inputs(n, t, seed, true);
  };
  c.run = [](const Arrays& v) {
    const auto [h, y] = add_layer_norm(v[0], v[1], v[2], v[3], kEps);
    return Arrays{h, y};
  };
  c.reference = [](const Arrays& v) {
    const auto h = mx::add(v[0], mx::astype(v[1], v[0].dtype()));
    return Arrays{h, layer_norm_reference(h, v[2], v[3], kEps, v[1].dtype())};
  };
  c.differentiable = {0, 1, 2, 3};
  return c;
}

}  // namespace

std::vector<OpCase> norm_cases() {
  return {
      rms_norm_case(), layer_norm_case(), add_rms_norm_case(),
      add_layer_norm_case()
  };
}

}  // namespace hearth::ops
