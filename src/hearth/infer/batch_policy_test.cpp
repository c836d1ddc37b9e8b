#include "hearth/infer/batch_policy.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/infer/fake_runner_test.h"

namespace hearth::infer {
namespace {

using Measured = std::vector<BatchMeasurement>;

TEST(BatchPolicy, TheBestScoreAmongThoseThatKeepTheRule) {
  const BatchRule rule;
  EXPECT_EQ(choose_batch(Measured{{1, 100, 10}}, rule), 1);
  EXPECT_EQ(choose_batch(Measured{{1, 100, 10}, {2, 180, 6}}, rule), 2);
  // A gain of 9 % is none.
  EXPECT_EQ(choose_batch(Measured{{1, 100, 10}, {2, 109, 9}}, rule), 1);
  // A tail that costs 11 % more is too much, 9 % is not.
  EXPECT_EQ(choose_batch(Measured{{1, 100, 10}, {2, 150, 11.1}}, rule), 1);
  EXPECT_EQ(choose_batch(Measured{{1, 100, 10}, {2, 150, 10.9}}, rule), 2);
  // Half of the penalty is taken off the gain: 50 - 0 against 53 - 4.5.
  EXPECT_EQ(
      choose_batch(Measured{{1, 100, 10}, {2, 150, 10}, {4, 153, 10.9}}, rule),
      2
  );
  EXPECT_EQ(choose_batch(Measured{}, rule), 1);
  EXPECT_EQ(choose_batch(Measured{{1, 0, 0}, {2, 5, 5}}, rule), 1);
}

// A step takes 2 ms whatever is in it, so a token of eight costs an eighth.
TEST(BatchPolicy, MeasuresWhatTheRunnerDoes) {
  FakeRunner::Options o;
  o.pages = 512;
  o.before_step = [](std::size_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  EngineOptions options;
  options.prefix_cache = false;
  Engine engine(
      [o] { return std::make_unique<FakeRunner>(o); }, nullptr, options
  );
  BatchRule rule;
  const auto measured = measure_batches(engine, {1, 2, 3}, rule, 8);
  ASSERT_EQ(measured.size(), 4u);
  EXPECT_EQ(choose_batch(measured, rule), 8);
  EXPECT_GT(measured[3].tokens_per_s, 4 * measured[0].tokens_per_s);
  EXPECT_LT(measured[0].tokens_per_s, 500);
  const auto report = batch_report(measured, 8);
  EXPECT_TRUE(report.starts_with("batch 8 of 1, 2, 4, 8: ")) << report;
}

}  // namespace
}  // namespace hearth::infer
