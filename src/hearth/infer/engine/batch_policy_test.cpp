#include "hearth/infer/engine/batch_policy.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/infer/engine/fake_runner_test.h"

namespace hearth::infer {
namespace {

using Measured = std::vector<BatchMeasurement>;

TEST(BatchPolicy, TheBestScoreAmongThoseThatKeepTheRule) {
  const BatchRule rule;
  const BatchMeasurement one{1, 100, 10, 10};
  EXPECT_EQ(choose_batch(Measured{one}, rule), 1);
  // A step of two takes longer, which is no penalty as long as it is even.
  EXPECT_EQ(choose_batch(Measured{one, {2, 180, 11, 11}}, rule), 2);
  EXPECT_EQ(choose_batch(Measured{one, {8, 400, 20, 20}}, rule), 8);
  // A gain of 9 % is none.
  EXPECT_EQ(choose_batch(Measured{one, {2, 109, 18, 18}}, rule), 1);
  // A tail that is 11 % longer is too much, however large the gain; 9 % is not.
  EXPECT_EQ(choose_batch(Measured{one, {2, 150, 10, 11.1}}, rule), 1);
  EXPECT_EQ(choose_batch(Measured{one, {8, 700, 10, 11.1}}, rule), 1);
  EXPECT_EQ(choose_batch(Measured{one, {2, 150, 10, 10.9}}, rule), 2);
  // Against the first one's own tail.
  const BatchMeasurement uneven{1, 100, 10, 12};
  EXPECT_EQ(choose_batch(Measured{uneven, {2, 150, 10, 12.9}}, rule), 2);
  EXPECT_EQ(choose_batch(Measured{uneven, {2, 150, 10, 13.5}}, rule), 1);
  // Half of the penalty is taken off the gain: 50 - 0 against 53 - 4.5.
  EXPECT_EQ(
      choose_batch(Measured{one, {2, 150, 10, 10}, {4, 153, 10, 10.9}}, rule), 2
  );
  EXPECT_EQ(choose_batch(Measured{}, rule), 1);
  EXPECT_EQ(choose_batch(Measured{{1, 0, 0, 0}, {2, 5, 5, 5}}, rule), 1);
}

// Steps that take as long as the test says, by how many sequences are in them.
std::vector<BatchMeasurement> measure_steps(
    const std::function<int(std::size_t sequences)>& milliseconds
) {
  FakeRunner::Options o;
  o.pages = 512;
  o.before_step = [&](std::size_t sequences) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(milliseconds(sequences))
    );
  };
  EngineOptions options;
  options.prefix_cache = false;
  Engine engine(
      [o] { return std::make_unique<FakeRunner>(o); }, nullptr, options
  );
  return measure_batches(engine, {1, 2, 3}, {.sizes = {1, 8}}, 8);
}

TEST(BatchPolicy, MeasuresWhatTheRunnerDoes) {
  const auto measured = measure_steps([](std::size_t) { return 10; });
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_GT(measured[1].tokens_per_s, 2 * measured[0].tokens_per_s);
  EXPECT_LT(measured[0].tokens_per_s, 100);
  for (const auto& m : measured) {
    EXPECT_GE(m.median_ms, 10);
    EXPECT_GE(m.p95_ms, m.median_ms);
  }
  // Other processes may have made any of the steps slow.
  const BatchRule lenient{.max_p95_penalty_pct = 1e9};
  EXPECT_EQ(choose_batch(measured, lenient), 8);
  const auto report = batch_report(measured, 8);
  EXPECT_TRUE(report.starts_with("batch 8 of 1, 8: ")) << report;
}

// Eight at once make eight times the tokens, but every fourth step hangs.
TEST(BatchPolicy, ATailThatIsTooLongIsNotTaken) {
  int steps = 0;
  const auto measured = measure_steps([&](std::size_t sequences) {
    return sequences < 8 ? 50 : ++steps % 4 == 0 ? 150 : 2;
  });
  ASSERT_EQ(measured.size(), 2u);
  EXPECT_GT(measured[1].tokens_per_s, 2 * measured[0].tokens_per_s);
  EXPECT_GT(measured[1].tail(), 2 * measured[0].tail());
  EXPECT_EQ(choose_batch(measured, {}), 1);
}

TEST(BatchPolicy, MeasuringIsCalledOffInTheMiddleOfASize) {
  FakeRunner::Options o;
  o.pages = 512;
  std::atomic<bool> stuck{false}, off{false};
  // The second size does not end by itself.
  o.before_step = [&](std::size_t rows) {
    if (rows == 1) return;
    stuck = true;
    off.wait(false);
  };
  EngineOptions options;
  options.prefix_cache = false;
  Engine engine(
      [o] { return std::make_unique<FakeRunner>(o); }, nullptr, options
  );
  const auto go_on = [&] {
    if (!stuck) return true;
    off = true;
    off.notify_all();
    return false;
  };
  const auto measured = measure_batches(engine, {1}, {}, 8, go_on);
  ASSERT_EQ(measured.size(), 1u);
  EXPECT_EQ(measured[0].batch, 1);
  engine.drain();
  EXPECT_EQ(engine.stats().running, 0u);
}

TEST(BatchPolicy, APromptAsLongAsTheContextIsCut) {
  FakeRunner::Options o;
  o.context = 16;
  Engine engine([o] { return std::make_unique<FakeRunner>(o); }, nullptr, {});
  const std::vector<std::int32_t> prompt(64, 1);
  EXPECT_EQ(measure_batches(engine, prompt, {.sizes = {1, 2}}, 8).size(), 2u);
}

}  // namespace
}  // namespace hearth::infer
