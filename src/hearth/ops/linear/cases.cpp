// Sizes are {tokens, n, k}.
#include <cmath>

#include "hearth/ops/batched_linear/op.h"
#include "hearth/ops/linears/op.h"
#include "hearth/ops/op_case.h"

namespace hearth::ops {
namespace {

double flops(const Size& n) {
  return 2.0 * n[0] * n[1] * n[2];
}
double bytes(const Size& n, mx::Dtype t) {
  return (double(n[0]) * (n[1] + n[2]) + double(n[1]) * n[2]) *
         double(mx::size_of(t));
}

// Weights of the size an initialiser gives them, so that y is of order 1 and
// one tolerance fits every depth.
Arrays inputs(const Size& n, mx::Dtype t, std::uint64_t seed, bool bias) {
  const auto scale = 1.0f / std::sqrt(static_cast<float>(n[2]));
  Arrays in{
      normal_input({n[0], n[2]}, t, seed),
      normal_input({n[1], n[2]}, t, seed + 1, scale)
  };
  if (bias) in.push_back(normal_input({n[1]}, at_least_float32(t), seed + 2));
  return in;
}

// y = x wᵀ with the weight as it is stored; dx = dy w; dw = dyᵀ x.
Product forward_product(const Size& n) {
  return {n[0], n[1], n[2], false, true, false};
}
Product input_gradient_product(const Size& n) {
  return {n[0], n[2], n[1], false, false, false};
}
Product weight_gradient_product(const Size& n) {
  return {n[1], n[2], n[0], true, false, false};
}

OpCase base(const char* name, bool bias) {
  OpCase c;
  c.name = name;
  c.primitives = {"Linear", "LinearGrad"};
  c.sizes = {{3, 5, 4},     {1, 1, 1},      {5, 33, 31},
             {130, 70, 45}, {33, 100, 600}, {300, 96, 128}};
  c.inputs = [bias](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return inputs(n, t, seed, bias);
  };
  c.differentiable = bias ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 1};
  // Sums of up to 600 products in float32; then bfloat16's last place.
  c.float32 = {{1e-5, 1e-5}, {5e-5, 1e-5}};
  c.bfloat16 = {{1e-3, 5e-3}, {2e-3, 5e-3}};
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{bytes(n, t), flops(n)};
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return Work{2 * bytes(n, t), 2 * flops(n)};
  };
  return c;
}

std::shared_ptr<const PackedWeight> packed(const mx::array& w) {
  auto rows = mx::contiguous(w);
  rows.eval();
  const auto type = w.dtype() == mx::bfloat16 ? kernels::GemmScalar::bf16
                                              : kernels::GemmScalar::f32;
  auto p = std::make_shared<PackedWeight>(
      w.shape(0), w.shape(1), type, MemoryZone::named("linear case"),
      PackedOrders::both, current_execution().kernels
  );
  p->refresh(rows.data<void>(), type, {0, w.shape(0)});
  return p;
}

OpCase linear_case() {
  OpCase c = base("linear", false);
  c.bench_sizes = {{2048, 2048, 2048}, {8192, 1024, 384}, {8192, 384, 1024}};
  c.forward_product = forward_product;
  c.run = [](const Arrays& v) { return Arrays{linear(v[0], v[1])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_reference(v[0], v[1])};
  };
  return c;
}

OpCase linear_bias_case() {
  OpCase c = base("linear_bias", true);
  c.run = [](const Arrays& v) { return Arrays{linear(v[0], v[1], v[2])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_reference(v[0], v[1], v[2])};
  };
  return c;
}

OpCase linear_add_case() {
  OpCase c = base("linear_add", false);
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    Arrays in = inputs(n, t, seed, false);
    in.push_back(normal_input({n[0], n[1]}, t, seed + 3));
    return in;
  };
  c.differentiable = {0, 1, 2};
  // A product's gradients are rounded before the scale is applied, and again.
  c.gpu_bfloat16 = {c.bfloat16.value, {2e-3, 9e-3}};
  c.run = [](const Arrays& v) {
    return Arrays{linear_add(v[2], v[0], v[1], 1.5f)};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_add_reference(v[2], v[0], v[1], 1.5f)};
  };
  return c;
}

OpCase linear_gated_case() {
  OpCase c = linear_add_case();
  c.name = "linear_gated";
  c.primitives = {"Linear", "LinearGrad", "GateGrad"};
  // Values are rounded twice; what the gate makes of dy is rounded before 300
  // rows of it are summed.
  c.bfloat16 = {{1e-3, 9e-3}, {1e-1, 5e-3}};
  // Once more where the activation is an op of its own.
  c.gpu_bfloat16 = {{1e-3, 13e-3}, {15e-2, 9e-3}};
  c.bench_sizes = {{8192, 1024, 384}, {2048, 2048, 2048}};
  c.run = [](const Arrays& v) {
    return Arrays{linear_gated(v[2], v[0], v[1], Activation::silu)};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_gated_reference(v[2], v[0], v[1], Activation::silu)};
  };
  return c;
}

// x; w, a and b of a layer with an adapter; w and bias of one that is half as
// wide.
Arrays parts_inputs(const Size& n, mx::Dtype t, std::uint64_t seed) {
  constexpr int kRank = 3;
  const auto scale = 1.0f / std::sqrt(static_cast<float>(n[2]));
  const auto adapter = 1.0f / std::sqrt(static_cast<float>(n[1]));
  const int half = (n[1] + 1) / 2;
  return {
      normal_input({n[0], n[2]}, t, seed),
      normal_input({n[1], n[2]}, t, seed + 1, scale),
      normal_input({kRank, n[2]}, t, seed + 2, scale),
      normal_input({n[1], kRank}, t, seed + 3, adapter),
      normal_input({half, n[2]}, t, seed + 4, scale),
      normal_input({half}, at_least_float32(t), seed + 5)
  };
}
std::vector<LinearPart> parts(const Arrays& v) {
  return {
      {v[1], {}, nullptr, LowRank{v[2], v[3], 0.5f, nullptr, nullptr}},
      {v[4], v[5], nullptr, {}}
  };
}

OpCase linears_case() {
  OpCase c = base("linears", false);
  c.primitives = {"Linears", "LinearGrad"};
  c.inputs = parts_inputs;
  c.differentiable = {0, 1, 2, 3, 4, 5};
  // What the adapter has inside is rounded, forward and back, before 300 rows
  // of it are summed.
  c.bfloat16 = {{4e-3, 9e-3}, {1e-1, 9e-3}};
  c.run = [](const Arrays& v) { return linears(v[0], parts(v)); };
  c.reference = [](const Arrays& v) {
    return linears_reference(v[0], parts(v));
  };
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{1.5 * bytes(n, t), 1.5 * flops(n)};
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return Work{3 * bytes(n, t), 3 * flops(n)};
  };
  return c;
}

// Three products of an odd number of rows, which threads take whole; one of an
// even number, which is cut among them.
OpCase batched_linear_case() {
  OpCase c = base("batched_linear", false);
  c.primitives = {"BatchedLinear", "BatchedLinearGrad"};
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    const auto scale = 1.0f / std::sqrt(static_cast<float>(n[2]));
    const int batch = n[0] % 2 == 1 ? 3 : 1;
    return Arrays{
        normal_input({batch, n[0], n[2]}, t, seed),
        normal_input({batch, n[1], n[2]}, t, seed + 1, scale)
    };
  };
  c.run = [](const Arrays& v) { return Arrays{batched_linear(v[0], v[1])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{batched_linear_reference(v[0], v[1])};
  };
  return c;
}

// Operands of one call as a training step makes it: the weight has a companion,
// activations are where the last op left them.
struct StepCall {
  mx::array x, w, dy;
  std::shared_ptr<const PackedWeight> companion;
  StepCall(const Size& n, mx::Dtype t)
      : x(normal_input({n[0], n[2]}, t, 1)),
        w(normal_input({n[1], n[2]}, t, 2)),
        dy(normal_input({n[0], n[1]}, t, 3)),
        companion(packed(w)) {
    mx::eval(x, w, dy);
  }
  mx::array forward(const mx::array& in, const mx::array& weight) const {
    return linear(in, weight, {}, companion);
  }
};

OpCase linear_step_case() {
  OpCase c = base("linear_packed", false);
  c.only_builds = false;
  c.bench_sizes = {{2048, 2048, 2048}, {8192, 1024, 384}, {8192, 384, 1024}};
  c.differentiable = {0};
  c.run = [](const Arrays& v) {
    return Arrays{linear(v[0], v[1], {}, packed(v[1]))};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_reference(v[0], v[1])};
  };
  c.timed = [](const Size& n, mx::Dtype t) {
    return [call = StepCall(n, t)] { mx::eval(call.forward(call.x, call.w)); };
  };
  c.timed_gradient = [](const Size& n, mx::Dtype t) {
    return [call = StepCall(n, t)] {
      const auto f = [&](const Arrays& v) {
        return Arrays{call.forward(v[0], call.w)};
      };
      mx::eval(mx::vjp(f, {call.x}, {call.dy}).second);
    };
  };
  c.gradient_work = c.forward_work;
  // A square weight meets the rival's best, packed beforehand; the thin ones
  // meet it as a training step calls it, whose weights change every step.
  c.forward_product = [](const Size& n) {
    Product p = forward_product(n);
    p.right_packed = n[1] == n[2];
    return p;
  };
  c.gradient_product = input_gradient_product;
  return c;
}

OpCase linear_weight_case() {
  OpCase c = base("linear_weight", false);
  c.bench_sizes = {{2048, 2048, 2048}, {8192, 1024, 384}, {8192, 384, 1024}};
  c.differentiable = {1};
  c.run = [](const Arrays& v) { return Arrays{linear(v[0], v[1])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_reference(v[0], v[1])};
  };
  c.timed_gradient = [](const Size& n, mx::Dtype t) {
    return [call = StepCall(n, t)] {
      const auto f = [&](const Arrays& v) {
        return Arrays{call.forward(call.x, v[0])};
      };
      mx::eval(mx::vjp(f, {call.w}, {call.dy}).second);
    };
  };
  c.gradient_work = c.forward_work;
  c.gradient_product = weight_gradient_product;
  c.forward_work = nullptr;
  return c;
}

OpCase packed_linear_case() {
  OpCase c = base("linear_packed_alone", true);
  c.primitives = {"PackedLinear"};
  // A weight that only our kernels can read.
  c.has_gpu = false;
  c.differentiable = {0, 2};
  c.run = [](const Arrays& v) {
    return Arrays{linear(v[0], packed(v[1]), v[2])};
  };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_reference(v[0], v[1], v[2])};
  };
  return c;
}

}  // namespace

std::vector<OpCase> linear_cases() {
  return {linear_case(),       linear_bias_case(),   linear_add_case(),
          linear_gated_case(), linears_case(),       batched_linear_case(),
          linear_step_case(),  linear_weight_case(), packed_linear_case()};
}

}  // namespace hearth::ops
