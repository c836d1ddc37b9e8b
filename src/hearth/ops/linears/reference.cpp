// What linear layers of one input mean, in MLX's own ops and at least float32.
#include "hearth/ops/linears/op.h"

namespace hearth::ops {

Arrays linears_reference(
    const mx::array& x,
    const std::vector<LinearPart>& parts,
    mx::StreamOrDevice s
) {
  const auto w_of = [&](const mx::array& w) {
    return wide(mx::astype(w, x.dtype(), s), s);
  };
  Arrays out;
  for (const LinearPart& part : parts) {
    auto y = linear_reference(wide(x, s), w_of(*part.w), part.bias, s);
    if (part.adapter) {
      const auto &a = part.adapter->a, &b = part.adapter->b;
      const auto inner = linear_reference(wide(x, s), w_of(a), {}, s);
      y = linear_add_reference(y, inner, w_of(b), part.adapter->scale, s);
    }
    out.push_back(mx::astype(y, x.dtype(), s));
  }
  return out;
}

}  // namespace hearth::ops
