#include "hearth/optim/clip.h"

#include <cmath>
#include <limits>

#include "hearth/ops/arithmetic/op.h"

namespace hearth::optim {

double global_norm(std::span<const mx::array> gradients) {
  return std::sqrt(ops::sum_squares(gradients));
}

double clip_factor(double norm, double limit) {
  if (!std::isfinite(norm)) return std::numeric_limits<double>::quiet_NaN();
  return limit > 0 && norm > limit ? limit / norm : 1;
}

}  // namespace hearth::optim
