#pragma once
// When a run saves between its steps: every so many of them, as the recipe
// says. Left to itself (0) it saves every tenth of the run, but not before a
// minute has passed and not after ten, and so seldom that a twentieth of the
// time goes into it at most.
#include <cstdint>

namespace hearth::train {

class SaveSchedule {
 public:
  // `now` is in seconds, from any beginning.
  SaveSchedule(std::int64_t every, std::int64_t steps, double now)
      : every_(every), steps_(steps), last_(now) {}

  // Whether to save after that step.
  bool due(std::int64_t step, double now) const;
  // A save of that step has ended and took so long.
  void saved(std::int64_t step, double now, double took);

 private:
  std::int64_t every_, steps_, last_step_ = 0;
  double last_, least_ = 60, most_ = 600;
};

}  // namespace hearth::train
