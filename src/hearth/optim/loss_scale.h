#pragma once
// The factor of the loss that keeps float16 gradients from vanishing: doubled
// after a run of good steps, halved when one overflows.
#include "hearth/base/json.h"

namespace hearth::optim {

class LossScale {
 public:
  // A fixed 1 where nothing needs scaling.
  static LossScale off();
  explicit LossScale(double initial = 65536, long growth_interval = 2000);

  // What the loss is multiplied by, and gradients divided by.
  double scale() const { return scale_; }
  // After each step: whether its gradients were finite. Returns whether the
  // step may be applied.
  bool update(bool finite);

  Json state() const;
  // Throws FormatError when it is no such state.
  void restore(const Json& state);

 private:
  double scale_;
  long growth_interval_;  // 0: fixed
  long good_steps_ = 0;
};

}  // namespace hearth::optim
