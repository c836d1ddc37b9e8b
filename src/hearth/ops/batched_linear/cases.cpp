// Sizes are {tokens, n, k}.
#include <cmath>

#include "hearth/ops/batched_linear/op.h"
#include "hearth/ops/linear/cases_impl.h"

namespace hearth::ops {

// Three products of an odd number of rows, which threads take whole; one of an
// even number, which is cut among them.
std::vector<OpCase> batched_linear_cases() {
  OpCase c = product_case("batched_linear", false);
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
  return {c};
}

}  // namespace hearth::ops
