// Sizes are {tokens, n, k}.
#include <cmath>

#include "hearth/ops/linear/cases_impl.h"
#include "hearth/ops/linears/op.h"

namespace hearth::ops {
namespace {

// x; w, a and b of a layer with an adapter; w and bias of one that is half as
// wide.
Arrays linears_inputs(const Size& n, mx::Dtype t, std::uint64_t seed) {
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
std::vector<LinearPart> linear_parts(const Arrays& v) {
  return {
      {v[1], {}, nullptr, LowRank{v[2], v[3], 0.5f, nullptr, nullptr}},
      {v[4], v[5], nullptr, {}}
  };
}

}  // namespace

std::vector<OpCase> linears_cases() {
  OpCase c = product_case("linears", false);
  c.primitives = {"Linears", "LinearGrad"};
  c.inputs = linears_inputs;
  c.differentiable = {0, 1, 2, 3, 4, 5};
  // What the adapter has inside is rounded, forward and back, before 300 rows
  // of it are summed.
  c.bfloat16 = {{4e-3, 9e-3}, {1e-1, 9e-3}};
  c.run = [](const Arrays& v) { return linears(v[0], linear_parts(v)); };
  c.reference = [](const Arrays& v) {
    return linears_reference(v[0], linear_parts(v));
  };
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{1.5 * product_bytes(n, t), 1.5 * product_flops(n)};
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return Work{3 * product_bytes(n, t), 3 * product_flops(n)};
  };
  return {c};
}

}  // namespace hearth::ops
