// Norms as a GPU runs them: behind an addition a kernel of ours, else MLX's
// fused kernels and their fused gradients, which add up in float32 whatever
// they read.
#include "hearth/ops/norm/gpu_add_rms.h"

namespace hearth::ops {
namespace {

std::optional<mx::array> in_type(
    const std::optional<mx::array>& x,
    mx::Dtype type,
    mx::StreamOrDevice s
) {
  if (!x) return {};
  return mx::astype(*x, type, s);
}

}  // namespace

// MLX's kernels read and write one type, that of the result, and the weight is
// rounded to it: half of the memory that a float32 stream would have them move.
// Rounding what goes in costs no more than rounding what comes out, as the norm
// only scales it. A layer norm takes a mean off, whose rounding may be large
// beside what is left: it reads its input as it is.
Arrays norm_gpu(
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
) {
  if (add_rms_fits(c, in, y, s)) return add_rms_gpu(c, in, s);
  auto h = in.stream[0];
  if (c.has_r) h = mx::add(h, mx::astype(in.stream[1], h.dtype(), s), s);
  const auto type = c.kind == NormKind::rms ? y : h.dtype();
  const auto x = mx::astype(h, type, s);
  const auto w = in_type(in.w, type, s), b = in_type(in.b, type, s);
  const auto normed = c.kind == NormKind::rms
                          ? mx::fast::rms_norm(x, w, c.eps, s)
                          : mx::fast::layer_norm(x, w, b, c.eps, s);
  const auto out = mx::astype(normed, y, s);
  return c.has_r ? Arrays{h, out} : Arrays{out};
}

}  // namespace hearth::ops
