#include "hearth/ops/norm/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/norm/faces_impl.h"
#include "hearth/ops/norm/gpu_add_rms.h"

namespace hearth::ops {
namespace {

void check(
    const char* where,
    const mx::array& x,
    const std::optional<mx::array>& v,
    const char* what
) {
  if (x.ndim() == 0 || x.shape(-1) == 0) {
    throw UsageError(
        fmt::format(
            "[{}] x must have a last dimension of at least 1, got shape [{}]",
            where, fmt::join(x.shape(), ", ")
        )
    );
  }
  if (v && (v->ndim() != 1 || v->shape(0) != x.shape(-1))) {
    throw UsageError(
        fmt::format(
            "[{}] {} must have shape [{}], got [{}]", where, what, x.shape(-1),
            fmt::join(v->shape(), ", ")
        )
    );
  }
}

void check_types(const char* where, mx::Dtype x, mx::Dtype y) {
  with_dtype(where, x, [](auto*) {});
  with_dtype(where, y, [](auto*) {});
  if (x == mx::bfloat16 && y == mx::float32) {
    throw UsageError(
        fmt::format(
            "[{}] a bfloat16 stream must have bfloat16 branches, got float32",
            where
        )
    );
  }
}

Arrays choose(
    const char* where,
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
) {
  const auto& x = in.stream[0];
  check(where, x, in.w, "w");
  check(where, x, in.b, "b");
  if (c.has_r && in.stream[1].shape() != x.shape()) {
    throw UsageError(
        fmt::format(
            "[{}] r must have x's shape [{}], got [{}]", where,
            fmt::join(x.shape(), ", "), fmt::join(in.stream[1].shape(), ", ")
        )
    );
  }
  const Face face = face_of(s, y);
  if (face == Face::gpu) return norm_gpu(c, in, y, s);
  if (face == Face::reference) return norm_reference(c, in, y, s);
  check_types(where, x.dtype(), y);
  return norm_cpu(c, in, y, s);
}

}  // namespace

mx::array rms_norm(
    const mx::array& x,
    const std::optional<mx::array>& w,
    float eps,
    std::optional<mx::Dtype> out_dtype,
    mx::StreamOrDevice s
) {
  const auto y = out_dtype.value_or(x.dtype());
  const NormConfig c{NormKind::rms, eps, false, w.has_value(), false, true};
  return choose("ops.rms_norm", c, {{x}, w, {}}, y, s)[0];
}

mx::array layer_norm(
    const mx::array& x,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    std::optional<mx::Dtype> out_dtype,
    mx::StreamOrDevice s
) {
  const auto y = out_dtype.value_or(x.dtype());
  const NormConfig c{NormKind::layer, eps,           false,
                     w.has_value(),   b.has_value(), true};
  return choose("ops.layer_norm", c, {{x}, w, b}, y, s)[0];
}

std::pair<mx::array, mx::array> add_rms_norm(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    float eps,
    bool h_used,
    mx::StreamOrDevice s
) {
  const NormConfig c{NormKind::rms, eps, true, true, false, h_used};
  const auto out = choose("ops.add_rms_norm", c, {{x, r}, w, {}}, r.dtype(), s);
  return {out[0], out[1]};
}

AddedNorm add_rms_norm_kept(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    float eps,
    bool h_used,
    mx::StreamOrDevice s
) {
  const NormConfig c{NormKind::rms, eps, true, true, false, h_used, true};
  const auto out = choose("ops.add_rms_norm", c, {{x, r}, w, {}}, r.dtype(), s);
  AddedNorm added{out[0], out[1], {}};
  if (out.size() > 2) {
    const auto weight = mx::astype(w, mx::float32, s);
    added.again = {mx::stop_gradient(out[2], s), mx::stop_gradient(weight, s)};
  }
  return added;
}

mx::array norm_again(const NormAgain& from, mx::StreamOrDevice s) {
  check("ops.norm_again", from.n, from.w, "w");
  if (norm_again_fits(from, s)) return norm_again_gpu(from, s);
  const auto y = mx::multiply(wide(from.n, s), wide(from.w, s), s);
  return mx::astype(y, from.n.dtype(), s);
}

std::pair<mx::array, mx::array> add_layer_norm(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    const std::optional<mx::array>& b,
    float eps,
    bool h_used,
    mx::StreamOrDevice s
) {
  const NormConfig c{NormKind::layer, eps, true, true, b.has_value(), h_used};
  const auto out =
      choose("ops.add_layer_norm", c, {{x, r}, w, b}, r.dtype(), s);
  return {out[0], out[1]};
}

}  // namespace hearth::ops
