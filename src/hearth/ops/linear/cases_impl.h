#pragma once
// What the cases of dense products share. Sizes are {tokens, n, k}.
#include <cmath>

#include "hearth/ops/op_case.h"

namespace hearth::ops {

inline double product_flops(const Size& n) {
  return 2.0 * n[0] * n[1] * n[2];
}
inline double product_bytes(const Size& n, mx::Dtype t) {
  return (double(n[0]) * (n[1] + n[2]) + double(n[1]) * n[2]) *
         double(mx::size_of(t));
}

// Weights of the size an initialiser gives them, so that y is of order 1 and
// one tolerance fits every depth.
inline Arrays product_inputs(
    const Size& n,
    mx::Dtype t,
    std::uint64_t seed,
    bool bias
) {
  const auto scale = 1.0f / std::sqrt(static_cast<float>(n[2]));
  Arrays in{
      normal_input({n[0], n[2]}, t, seed),
      normal_input({n[1], n[2]}, t, seed + 1, scale)
  };
  if (bias) in.push_back(normal_input({n[1]}, at_least_float32(t), seed + 2));
  return in;
}

inline OpCase product_case(const char* name, bool bias) {
  OpCase c;
  c.name = name;
  c.primitives = {"Linear", "LinearGrad"};
  c.sizes = {{3, 5, 4},     {1, 1, 1},      {5, 33, 31},
             {130, 70, 45}, {33, 100, 600}, {300, 96, 128}};
  c.inputs = [bias](const Size& n, mx::Dtype t, std::uint64_t seed) {
    return product_inputs(n, t, seed, bias);
  };
  c.differentiable = bias ? std::vector<int>{0, 1, 2} : std::vector<int>{0, 1};
  // Sums of up to 600 products in float32; then bfloat16's last place.
  c.float32 = {{1e-5, 1e-5}, {5e-5, 1e-5}};
  c.bfloat16 = {{1e-3, 5e-3}, {2e-3, 5e-3}};
  c.forward_work = [](const Size& n, mx::Dtype t) {
    return Work{product_bytes(n, t), product_flops(n)};
  };
  c.gradient_work = [](const Size& n, mx::Dtype t) {
    return Work{2 * product_bytes(n, t), 2 * product_flops(n)};
  };
  return c;
}

}  // namespace hearth::ops
