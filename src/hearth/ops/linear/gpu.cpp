// The linear layer as a GPU runs it: MLX's products, in the activations' dtype,
// with gradients written out. MLX's own gradient of x w^T makes that of w^T and
// transposes it, and whoever adds it up then copies it.
#include <mlx/transforms.h>

#include "hearth/ops/linear/faces_impl.h"

namespace hearth::ops {
namespace {

mx::array rows(const mx::array& a, mx::StreamOrDevice s) {
  return mx::flatten(mx::atleast_2d(a, s), 0, -2, s);
}

mx::array times(const mx::array& a, float factor, mx::StreamOrDevice s) {
  if (factor == 1) return a;
  const auto by = mx::array(static_cast<double>(factor), a.dtype());
  return mx::multiply(a, by, s);
}

// A product and what is added to it, rounded once where there is a third input.
struct MatrixProduct {
  mx::StreamOrDevice s;
  float scale = 1;  // of the product
  bool residual = false;

  // x, w[, bias or residual] -> y
  Arrays operator()(const Arrays& in) const {
    const auto& x = in[0];
    const auto w = mx::transpose(mx::astype(in[1], x.dtype(), s), s);
    if (in.size() == 2) return {mx::matmul(x, w, s)};
    const auto third = mx::astype(in[2], x.dtype(), s);
    return {mx::addmm(third, x, w, scale, 1, s)};
  }

  Arrays gradients(const Arrays& in, const mx::array& dy) const {
    const auto &x = in[0], &w = in[1];
    const auto by_row = mx::astype(w, x.dtype(), s);
    const auto dw = times(weight_gradient_gpu(dy, x, s), scale, s);
    Arrays out{
        times(mx::matmul(dy, by_row, s), scale, s), mx::astype(dw, w.dtype(), s)
    };
    if (in.size() == 2) return out;
    out.push_back(
        residual ? dy : mx::astype(bias_gradient_gpu(dy, s), in[2].dtype(), s)
    );
    return out;
  }

  mx::array run(const Arrays& in) const {
    const auto back = [p = *this](
                          const Arrays& v, const Arrays& ct, const Arrays&
                      ) { return p.gradients(v, ct[0]); };
    return mx::custom_vjp(*this, back)(in)[0];
  }
};

}  // namespace

mx::array weight_gradient_gpu(
    const mx::array& dy,
    const mx::array& x,
    mx::StreamOrDevice s
) {
  return mx::matmul(mx::transpose(rows(dy, s), s), rows(x, s), s);
}

mx::array bias_gradient_gpu(const mx::array& dy, mx::StreamOrDevice s) {
  // As a product, whose sums are float32 whatever its operands are, and which
  // needs no copy of dy in float32.
  const auto all = rows(dy, s);
  const auto ones = mx::ones({1, all.shape(0)}, all.dtype(), s);
  return mx::reshape(mx::matmul(ones, all, s), {all.shape(1)}, s);
}

mx::array linear_gpu(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    mx::StreamOrDevice s
) {
  Arrays in{x, w};
  if (bias) in.push_back(*bias);
  return MatrixProduct{s}.run(in);
}

mx::array linear_add_gpu(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale,
    mx::StreamOrDevice s
) {
  return MatrixProduct{s, scale, true}.run({x, w, residual});
}

mx::array linear_gated_gpu(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    mx::StreamOrDevice s
) {
  return gated_mlp_activation(gate, linear_gpu(x, w, {}, s), act, s);
}

}  // namespace hearth::ops
