// Checks linear layers side by side and chooses the form that runs them.
#include "hearth/ops/batched_linear/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/batched_linear/faces_impl.h"

namespace hearth::ops {
namespace {

void check(const mx::array& x, const mx::array& w) {
  const bool fits = x.ndim() == 3 && w.ndim() == 3 &&
                    x.shape(0) == w.shape(0) && x.shape(2) == w.shape(2);
  if (!fits) {
    throw UsageError(
        fmt::format(
            "[ops.batched_linear] x and w must have shapes [b, m, k] and [b, "
            "n, "
            "k], got [{}] and [{}]",
            fmt::join(x.shape(), ", "), fmt::join(w.shape(), ", ")
        )
    );
  }
  if (x.dtype() != w.dtype()) {
    throw UsageError("[ops.batched_linear] x and w must have one dtype");
  }
}

}  // namespace

mx::array batched_linear(
    const mx::array& x,
    const mx::array& w,
    mx::StreamOrDevice s
) {
  check(x, w);
  switch (face_of(s, x.dtype())) {
    case Face::gpu:
      return batched_linear_gpu(x, w, s);
    case Face::reference:
      return batched_linear_reference(x, w, s);
    case Face::kernels:
      break;
  }
  return batched_linear_cpu(x, w, s);
}

}  // namespace hearth::ops
