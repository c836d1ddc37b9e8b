#include "hearth/optim/loss_scale.h"

#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"

namespace hearth::optim {
namespace {

// Below the least a step that overflows has another cause; above the most a
// float32 loss would overflow by itself.
constexpr double kLeast = 1.0 / 65536, kMost = 16777216.0 * 65536;

}  // namespace

LossScale LossScale::off() {
  return LossScale(1, 0);
}

LossScale::LossScale(double initial, long growth_interval)
    : scale_(initial), growth_interval_(growth_interval) {
  if (!(initial >= kLeast && initial <= kMost) || growth_interval < 0) {
    throw UsageError(
        "[optim.LossScale] the scale must be within 2^-16 and 2^40 and the "
        "interval at least 0"
    );
  }
}

bool LossScale::update(bool finite) {
  if (growth_interval_ == 0) return finite;
  if (!finite) {
    good_steps_ = 0;
    scale_ = std::max(kLeast, scale_ / 2);
    return false;
  }
  if (++good_steps_ >= growth_interval_) {
    good_steps_ = 0;
    scale_ = std::min(kMost, scale_ * 2);
  }
  return true;
}

Json LossScale::state() const {
  return {{"scale", scale_}, {"good_steps", good_steps_}};
}

void LossScale::restore(const Json& state) {
  const auto number = [&](const char* key) {
    const auto at = state.find(key);
    return at != state.end() && at->is_number() ? at->get<double>() : -1.0;
  };
  const double scale = number("scale"), good = number("good_steps");
  if (!(scale >= kLeast && scale <= kMost && good >= 0 && good < 1e15)) {
    throw FormatError(
        "[optim.LossScale] the state must hold a scale and good_steps, got " +
        to_json_line(state)
    );
  }
  scale_ = scale;
  good_steps_ = static_cast<long>(good);
}

}  // namespace hearth::optim
