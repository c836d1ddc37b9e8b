// The definitions of norms, in MLX's own ops.
#include "hearth/ops/norm/faces_impl.h"

namespace hearth::ops {
namespace {

mx::array scaled(
    const mx::array& centred,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s
) {
  const auto variance = mx::mean(mx::square(centred, s), -1, true, s);
  const auto e = mx::array(eps, variance.dtype());
  auto y = mx::multiply(centred, mx::rsqrt(mx::add(variance, e, s), s), s);
  if (w) y = mx::multiply(y, wide(*w, s), s);
  if (b) y = mx::add(y, wide(*b, s), s);
  return mx::astype(y, out_dtype, s);
}

}  // namespace

mx::array rms_norm_reference(
    const mx::array& x,
    const std::optional<mx::array>& w,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s
) {
  return scaled(wide(x, s), w, {}, eps, out_dtype, s);
}

mx::array layer_norm_reference(
    const mx::array& x,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s
) {
  const auto v = wide(x, s);
  const auto centred = mx::subtract(v, mx::mean(v, -1, true, s), s);
  return scaled(centred, w, b, eps, out_dtype, s);
}

Arrays norm_reference(
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
) {
  auto h = in.stream[0];
  if (c.has_r) h = mx::add(h, mx::astype(in.stream[1], h.dtype(), s), s);
  const auto normed = c.kind == NormKind::rms
                          ? rms_norm_reference(h, in.w, c.eps, y, s)
                          : layer_norm_reference(h, in.w, in.b, c.eps, y, s);
  return c.has_r ? Arrays{h, normed} : Arrays{normed};
}

}  // namespace hearth::ops
