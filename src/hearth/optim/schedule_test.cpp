#include "hearth/optim/schedule.h"

#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"

namespace hearth::optim {
namespace {

OptimConfig config_of(const char* schedule, double warmup = 0) {
  OptimConfig c;
  c.schedule = schedule;
  c.lr = 2;
  c.warmup = warmup;
  return c;
}

TEST(Schedule, WarmsUpFromTheFirstUpdate) {
  const auto c = config_of("constant", 4);
  EXPECT_DOUBLE_EQ(learning_rate(c, 0, 10), 0.5);
  EXPECT_DOUBLE_EQ(learning_rate(c, 1, 10), 1.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 3, 10), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 4, 10), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(c, 9, 10), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(config_of("constant"), 0, 10), 2.0);
}

TEST(Schedule, WarmupBelowOneIsAShare) {
  EXPECT_EQ(warmup_steps(config_of("linear", 0.1), 30), 3);
  EXPECT_EQ(warmup_steps(config_of("linear", 0.1), 31), 4);
  EXPECT_EQ(warmup_steps(config_of("linear", 7), 30), 7);
  EXPECT_EQ(warmup_steps(config_of("linear", 0), 30), 0);
}

TEST(Schedule, HandComputedShapes) {
  const auto linear = config_of("linear", 2);
  EXPECT_DOUBLE_EQ(learning_rate(linear, 2, 10), 2.0);
  EXPECT_DOUBLE_EQ(learning_rate(linear, 4, 10), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate(linear, 9, 10), 0.25);
  EXPECT_DOUBLE_EQ(learning_rate(linear, 50, 10), 0.0);
  auto cosine = config_of("cosine");
  cosine.min_lr = 0.1;
  EXPECT_DOUBLE_EQ(learning_rate(cosine, 0, 6), 2.0);
  // cos(60 degrees) is a half: 0.2 + 1.8 * 0.75.
  EXPECT_NEAR(learning_rate(cosine, 2, 6), 1.55, 1e-12);
  EXPECT_NEAR(learning_rate(cosine, 3, 6), 1.1, 1e-12);
  EXPECT_NEAR(learning_rate(cosine, 6, 6), 0.2, 1e-12);
  auto wsd = config_of("wsd", 2);
  wsd.decay_fraction = 0.4;
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 0, 10), 1.0);
  for (long step = 1; step <= 6; ++step) {
    EXPECT_DOUBLE_EQ(learning_rate(wsd, step, 10), 2.0) << step;
  }
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 7, 10), 1.5);
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 9, 10), 0.5);
}

TEST(Schedule, AWarmupLongerThanTheRunStillRises) {
  const auto c = config_of("cosine", 100);
  EXPECT_DOUBLE_EQ(learning_rate(c, 9, 10), 0.2);
}

// transformers' first update has a rate of 0; ours is one step ahead of it
// while it warms up and the same afterwards.
TEST(Schedule, MatchesTransformers) {
  const Json golden =
      read_json_file(HEARTH_SOURCE_DIR "/tests/golden/optimizers.json");
  for (const Json& g : golden.at("schedules")) {
    SCOPED_TRACE(g.at("schedule").get<std::string>());
    OptimConfig c;
    c.schedule = g.at("schedule").get<std::string>();
    c.lr = g.at("lr").get<double>();
    c.warmup = g.at("warmup").get<double>();
    c.min_lr = g.value("min_lr", 0.0);
    c.decay_fraction = g.value("decay_fraction", 0.2);
    const auto rates = g.at("rates").get<std::vector<double>>();
    const long total = g.at("total").get<long>();
    for (long step = 0; step < total; ++step) {
      const auto at = static_cast<std::size_t>(
          static_cast<double>(step) < c.warmup ? step + 1 : step
      );
      EXPECT_NEAR(learning_rate(c, step, total), rates.at(at), 1e-10) << step;
    }
  }
}

TEST(Schedule, RefusesWhatHasNoRate) {
  EXPECT_THROW(learning_rate(config_of("cosine"), -1, 10), UsageError);
  EXPECT_THROW(learning_rate(config_of("cosine"), 0, 0), UsageError);
  EXPECT_THROW(learning_rate(config_of("zigzag"), 0, 10), UsageError);
}

}  // namespace
}  // namespace hearth::optim
