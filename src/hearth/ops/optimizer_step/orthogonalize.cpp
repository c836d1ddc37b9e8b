// Muon's second part, on any device.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic/op.h"
#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {

mx::array orthogonalize(
    const mx::array& x,
    int steps,
    const std::function<mx::array(const mx::array&, const mx::array&)>& product,
    mx::StreamOrDevice s
) {
  if (x.ndim() != 2 || x.dtype() != mx::float32) {
    throw UsageError(
        fmt::format(
            "[ops.orthogonalize] x must be a float32 matrix, got {} dimensions",
            x.ndim()
        )
    );
  }
  // Coefficients that lift small singular values fastest and leave all of
  // them within about [0.7, 1.2].
  constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;
  const bool tall = x.shape(0) > x.shape(1);
  auto y = tall ? dense(mx::transpose(x, s), s) : x;
  const auto norm = mx::sqrt(mx::sum(mx::square(y, s), s), s);
  y = mx::divide(y, mx::add(norm, mx::array(1e-7f), s), s);
  for (int i = 0; i < steps; ++i) {
    // a is its own transpose, and so is b.
    const auto a = product(y, y);
    const auto b = ops::add(
        scale(a, mx::array(kB), s), scale(product(a, a), mx::array(kC), s), s
    );
    y = ops::add(
        scale(y, mx::array(kA), s), product(b, dense(mx::transpose(y, s), s)), s
    );
  }
  return tall ? dense(mx::transpose(y, s), s) : y;
}

}  // namespace hearth::ops
