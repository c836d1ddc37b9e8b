// What the quantised linear layer means: a product with the weights read back,
// in MLX's own ops and at least float32.
#include "hearth/ops/quantized_linear/op.h"

namespace hearth::ops {

mx::array quantized_linear_reference(
    const mx::array& x,
    const mx::array& weights,
    mx::StreamOrDevice s
) {
  const auto rounded = mx::astype(weights, x.dtype(), s);
  const auto w = mx::transpose(wide(rounded, s), s);
  return mx::astype(mx::matmul(wide(x, s), w, s), x.dtype(), s);
}

}  // namespace hearth::ops
