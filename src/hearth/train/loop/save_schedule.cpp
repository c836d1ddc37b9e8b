#include "hearth/train/loop/save_schedule.h"

#include <algorithm>

namespace hearth::train {

bool SaveSchedule::due(std::int64_t step, double now) const {
  if (every_ > 0) return step % every_ == 0;
  const double since = now - last_;
  const bool tenth = 10 * (step - last_step_) >= steps_;
  return since >= most_ || (tenth && since >= least_);
}

void SaveSchedule::saved(std::int64_t step, double now, double took) {
  last_step_ = step;
  last_ = now;
  least_ = std::max(60.0, 20 * took);
  most_ = std::max(600.0, 20 * took);
}

}  // namespace hearth::train
