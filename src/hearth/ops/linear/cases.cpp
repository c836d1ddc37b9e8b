// Sizes are {tokens, n, k}.
#include "hearth/ops/linear/cases_impl.h"
#include "hearth/ops/linear/op.h"

namespace hearth::ops {
namespace {

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
  OpCase c = product_case("linear", false);
  c.bench_sizes = {{2048, 2048, 2048}, {8192, 1024, 384}, {8192, 384, 1024}};
  c.forward_product = forward_product;
  c.run = [](const Arrays& v) { return Arrays{linear(v[0], v[1])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_reference(v[0], v[1])};
  };
  return c;
}

OpCase linear_bias_case() {
  OpCase c = product_case("linear_bias", true);
  c.run = [](const Arrays& v) { return Arrays{linear(v[0], v[1], v[2])}; };
  c.reference = [](const Arrays& v) {
    return Arrays{linear_reference(v[0], v[1], v[2])};
  };
  return c;
}

OpCase linear_add_case() {
  OpCase c = product_case("linear_add", false);
  c.inputs = [](const Size& n, mx::Dtype t, std::uint64_t seed) {
    Arrays in = product_inputs(n, t, seed, false);
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
  OpCase c = product_case("linear_packed", false);
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
  OpCase c = product_case("linear_weight", false);
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
  OpCase c = product_case("linear_packed_alone", true);
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
  return {linear_case(),       linear_bias_case(), linear_add_case(),
          linear_gated_case(), linear_step_case(), linear_weight_case(),
          packed_linear_case()};
}

}  // namespace hearth::ops
