#include "hearth/ops/arithmetic/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic/faces_impl.h"

namespace hearth::ops {
namespace {

void require_float(const char* where, const mx::array& a) {
  with_dtype(where, a.dtype(), [](auto*) {});
}

}  // namespace

mx::array add(const mx::array& a, const mx::array& b, mx::StreamOrDevice s) {
  if (a.shape() != b.shape()) {
    throw UsageError(
        fmt::format(
            "[ops.add] shapes must be equal, got [{}] and [{}]",
            fmt::join(a.shape(), ", "), fmt::join(b.shape(), ", ")
        )
    );
  }
  const Face face = face_of(s, a.dtype());
  if (face == Face::gpu) return add_gpu(a, b, s);
  // Our kernels lack float16 as a second operand, too.
  if (face == Face::reference || b.dtype() == mx::float16) {
    return add_reference(a, b, s);
  }
  require_float("ops.add", a);
  require_float("ops.add", b);
  return add_cpu(a, b, s);
}

mx::array scale(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s
) {
  if (factor.size() != 1) {
    throw UsageError(
        fmt::format(
            "[ops.scale] the factor must have one element, got {}",
            factor.size()
        )
    );
  }
  const Face face = face_of(s, x.dtype());
  if (face == Face::gpu) return scale_gpu(x, factor, s);
  if (face == Face::reference) return scale_reference(x, factor, s);
  require_float("ops.scale", x);
  return scale_cpu(x, factor, s);
}

// MLX's cast rounds as ours does, so it is both the definition and the GPU's.
mx::array cast(const mx::array& x, mx::Dtype dtype, mx::StreamOrDevice s) {
  if (x.dtype() == dtype) return x;
  if (!ours(s, x.dtype()) || !ours(s, dtype)) return mx::astype(x, dtype, s);
  require_float("ops.cast", x);
  with_dtype("ops.cast", dtype, [](auto*) {});
  return cast_cpu(x, dtype, s);
}

mx::array cast_stochastic(
    const mx::array& x,
    RandomKey key,
    mx::StreamOrDevice s
) {
  if (x.dtype() != mx::float32) refuse_dtype("ops.cast_stochastic", x.dtype());
  if (!on_cpu(s)) return cast_stochastic_gpu(x, key, s);
  return cast_stochastic_cpu(x, key, s);
}

Arrays fork(const mx::array& x, int n, mx::StreamOrDevice s) {
  if (n < 1) {
    throw UsageError(
        fmt::format("[ops.fork] there must be at least one use, got {}", n)
    );
  }
  const Face face = face_of(s, x.dtype());
  if (face == Face::gpu) return fork_gpu(x, n, s);
  if (face == Face::reference) return fork_reference(x, n, s);
  require_float("ops.fork", x);
  return fork_cpu(x, n, s);
}

}  // namespace hearth::ops
