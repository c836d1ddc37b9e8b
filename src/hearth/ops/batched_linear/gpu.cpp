// Linear layers side by side as a GPU runs them: MLX's products of batches, in
// the activations' dtype, and the weights' gradients made row by row.
#include <mlx/transforms.h>

#include "hearth/ops/batched_linear/faces_impl.h"

namespace hearth::ops {

mx::array batched_linear_gpu(
    const mx::array& x,
    const mx::array& w,
    mx::StreamOrDevice s
) {
  const auto forward = [s](const Arrays& in) {
    return Arrays{mx::matmul(in[0], mx::swapaxes(in[1], 1, 2, s), s)};
  };
  const auto back = [s](const Arrays& in, const Arrays& ct, const Arrays&) {
    return Arrays{
        mx::matmul(ct[0], in[1], s),
        mx::matmul(mx::swapaxes(ct[0], 1, 2, s), in[0], s)
    };
  };
  return mx::custom_vjp(forward, back)({x, w})[0];
}

}  // namespace hearth::ops
