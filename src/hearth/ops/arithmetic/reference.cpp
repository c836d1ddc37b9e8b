// The definitions of the small arithmetic, in MLX's own ops.
#include "hearth/ops/arithmetic/op.h"

namespace hearth::ops {

mx::array add_reference(
    const mx::array& a,
    const mx::array& b,
    mx::StreamOrDevice s
) {
  const auto sum = mx::add(wide(a, s), wide(b, s), s);
  return mx::astype(sum, a.dtype(), s);
}

mx::array scale_reference(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s
) {
  const auto v = wide(x, s);
  const auto f = mx::astype(factor, v.dtype(), s);
  return mx::astype(mx::multiply(v, f, s), x.dtype(), s);
}

Arrays fork_reference(const mx::array& x, int n, mx::StreamOrDevice s) {
  // Arrays of their own: MLX's vjp counts an output that is listed twice once.
  Arrays uses;
  const auto one = mx::array(1, x.dtype());
  for (int i = 0; i < n; ++i) uses.push_back(mx::multiply(x, one, s));
  return uses;
}

}  // namespace hearth::ops
