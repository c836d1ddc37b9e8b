// What the linear layer means, in MLX's own ops and at least float32. It is
// what tests hold the other forms to, and what float16 on a CPU runs.
#include "hearth/ops/linear/op.h"

namespace hearth::ops {
namespace {

// x w^T + bias before it is rounded to x's dtype.
mx::array wide_product(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    mx::StreamOrDevice s
) {
  const auto weight = wide(mx::astype(w, x.dtype(), s), s);
  const auto y = mx::matmul(wide(x, s), mx::transpose(weight, s), s);
  return bias ? mx::add(y, mx::astype(*bias, y.dtype(), s), s) : y;
}

}  // namespace

mx::array linear_reference(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    mx::StreamOrDevice s
) {
  return mx::astype(wide_product(x, w, bias, s), x.dtype(), s);
}

mx::array linear_add_reference(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale,
    mx::StreamOrDevice s
) {
  const auto y = wide_product(x, w, {}, s);
  const auto by = mx::array(static_cast<double>(scale), y.dtype());
  const auto sum = mx::add(wide(residual, s), mx::multiply(y, by, s), s);
  return mx::astype(sum, x.dtype(), s);
}

mx::array linear_gated_reference(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    mx::StreamOrDevice s
) {
  const auto y = wide_product(x, w, {}, s);
  const auto g = activate_reference(wide(gate, s), act, 1, s);
  return mx::astype(mx::multiply(g, y, s), x.dtype(), s);
}

}  // namespace hearth::ops
