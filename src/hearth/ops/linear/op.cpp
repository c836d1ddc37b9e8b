// Checks what a linear layer is given and chooses the form that runs it.
#include "hearth/ops/linear/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/linear/faces_impl.h"

namespace hearth::ops {
namespace {

using Packed = std::shared_ptr<const PackedWeight>;

void check(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    const Packed& packed
) {
  const auto refuse = [](const std::string& what) {
    throw UsageError("[ops.linear] " + what);
  };
  if (w.ndim() != 2) {
    refuse(
        fmt::format(
            "w must have two dimensions, got [{}]", fmt::join(w.shape(), ", ")
        )
    );
  }
  if (x.ndim() == 0 || x.shape(-1) != w.shape(1)) {
    refuse(
        fmt::format(
            "x must have shape [..., {}] as w has [{}, {}], got [{}]",
            w.shape(1), w.shape(0), w.shape(1), fmt::join(x.shape(), ", ")
        )
    );
  }
  if (bias && (bias->ndim() != 1 || bias->shape(0) != w.shape(0))) {
    refuse(
        fmt::format(
            "bias must have shape [{}], got [{}]", w.shape(0),
            fmt::join(bias->shape(), ", ")
        )
    );
  }
  if (packed && (packed->n() != w.shape(0) || packed->k() != w.shape(1))) {
    refuse(
        fmt::format(
            "packed must be of w's shape [{}, {}], got [{}, {}]", w.shape(0),
            w.shape(1), packed->n(), packed->k()
        )
    );
  }
}

mx::Shape shape_of(const mx::array& x, const mx::array& w) {
  mx::Shape shape = x.shape();
  shape.back() = w.shape(0);
  return shape;
}

// The third input must be as the product will be.
void check_third(
    const char* what,
    const mx::array& third,
    const mx::array& x,
    const mx::array& w
) {
  if (third.shape() == shape_of(x, w) && third.dtype() == x.dtype()) return;
  throw UsageError(
      fmt::format(
          "[ops.linear] {} must have x's dtype and shape [{}], got [{}]", what,
          fmt::join(shape_of(x, w), ", "), fmt::join(third.shape(), ", ")
      )
  );
}

}  // namespace

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias,
    Packed packed,
    mx::StreamOrDevice s
) {
  check(x, w, bias, packed);
  switch (face_of(s, x.dtype())) {
    case Face::gpu:
      return linear_gpu(x, w, bias, s);
    case Face::reference:
      return linear_reference(x, w, bias, s);
    case Face::kernels:
      break;
  }
  return linear_cpu(x, w, bias, std::move(packed), s);
}

mx::array linear_add(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale,
    Packed packed,
    mx::StreamOrDevice s
) {
  check(x, w, {}, packed);
  check_third("residual", residual, x, w);
  switch (face_of(s, x.dtype())) {
    case Face::gpu:
      return linear_add_gpu(residual, x, w, scale, s);
    case Face::reference:
      return linear_add_reference(residual, x, w, scale, s);
    case Face::kernels:
      break;
  }
  return linear_add_cpu(residual, x, w, scale, std::move(packed), s);
}

mx::array linear_gated(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    Packed packed,
    mx::StreamOrDevice s
) {
  check(x, w, {}, packed);
  check_third("gate", gate, x, w);
  switch (face_of(s, x.dtype())) {
    case Face::gpu:
      return linear_gated_gpu(gate, x, w, act, s);
    case Face::reference:
      return linear_gated_reference(gate, x, w, act, s);
    case Face::kernels:
      break;
  }
  return linear_gated_cpu(gate, x, w, act, std::move(packed), s);
}

}  // namespace hearth::ops
