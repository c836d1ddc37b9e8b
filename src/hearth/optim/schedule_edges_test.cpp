// Schedules where their parts meet: a warm-up that reaches into the decay.
#include <gtest/gtest.h>

#include "hearth/optim/schedule.h"

namespace hearth::optim {
namespace {

// The decay begins where the warm-up ends, at the full rate, and still ends
// with the run.
TEST(ScheduleEdges, AWarmupPastTheDecaysBeginningComesFirst) {
  OptimConfig c;
  c.schedule = "wsd", c.lr = 8, c.warmup = 6, c.decay_fraction = 0.8;
  // Ten steps: the decay alone would begin at the second.
  const double rates[] = {8 / 6.0, 16 / 6.0, 24 / 6.0, 32 / 6.0, 40 / 6.0,
                          8,       8,        6,        4,        2};
  for (long step = 0; step < 10; ++step) {
    EXPECT_NEAR(learning_rate(c, step, 10), rates[step], 1e-12) << step;
  }
}

TEST(ScheduleEdges, TheDecayTakesItsShareAndEndsAtTheLeastRate) {
  OptimConfig c;
  c.schedule = "wsd", c.lr = 4, c.min_lr = 0.25, c.decay_fraction = 0.5;
  EXPECT_NEAR(learning_rate(c, 4, 8), 4, 1e-12);
  EXPECT_NEAR(learning_rate(c, 6, 8), 2.5, 1e-12);
  EXPECT_NEAR(learning_rate(c, 8, 8), 1, 1e-12);
}

}  // namespace
}  // namespace hearth::optim
