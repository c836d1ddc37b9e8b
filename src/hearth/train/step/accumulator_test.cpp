// Running out of memory at every place where a step can, and the sums that
// come out all the same.
#include "hearth/train/step/accumulator.h"

#include <cmath>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/models/load.h"
#include "hearth/nn/init.h"
#include "hearth/train/objectives/language_model.h"

namespace hearth::train {
namespace {

constexpr std::uint32_t kRows = 8;

std::unique_ptr<models::Decoder> make_model() {
  models::DecoderConfig c;
  c.family = "llama";
  c.vocab = 64, c.dim = 32, c.layers = 2, c.heads = 2, c.kv_heads = 2;
  c.head_dim = 16, c.ffn = 48, c.max_length = 64;
  c.tie = true;
  c.windows = {0, 0};
  c.rope = ops::RopeConfig{.dims = 16};
  auto model = std::make_unique<models::Decoder>(c);
  for (nn::Weight* p : model->parameters().all()) {
    nn::initialize(*p, 3, c.layers);
    p->trainable = true;
  }
  models::prepare(*model, mx::float32, models::Use::training);
  return model;
}

data::Batch make_batch() {
  data::Batch b;
  b.rows = kRows, b.length = 16;
  RandomStream random{RandomKey(5)};
  for (std::uint32_t i = 0; i < b.rows * b.length; ++i) {
    b.ids.push_back(static_cast<std::int32_t>(random.below(64)));
    b.targets.push_back(static_cast<std::int32_t>(random.below(64)));
    b.segments.push_back(1);
    b.positions.push_back(static_cast<std::int32_t>(i % b.length));
    b.weights.push_back(i % 3 == 0 ? 0.0f : 1.0f);
  }
  return b;
}

void expect_same(const Gradients& a, const Gradients& b) {
  EXPECT_NEAR(a.loss_sum, b.loss_sum, 1e-3);
  EXPECT_EQ(a.weight_sum, b.weight_sum);
  ASSERT_EQ(a.arrays.size(), b.arrays.size());
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    auto off = mx::max(mx::abs(mx::subtract(a.arrays[i], b.arrays[i])));
    EXPECT_LE(off.item<float>(), 2e-4) << i;
  }
}

class Accumulate : public testing::Test {
 protected:
  std::unique_ptr<models::Decoder> model = make_model();
  data::Batch batch = make_batch();
  int shrunk = 0;

  Gradients run(std::uint32_t& rows, int together = 1) {
    AccumulateOptions options;
    options.compute = mx::float32;
    options.eval_interval = together;
    options.shrunk = [this](auto, auto, const std::string& why) {
      ++shrunk;
      EXPECT_FALSE(why.empty());
    };
    Gradients g = accumulate(*model, LanguageModel(), batch, rows, options);
    // The sums lie where the next run puts its own.
    for (auto& a : g.arrays) {
      a = mx::add(a, mx::array(0.0f));
      a.eval();
    }
    return g;
  }
  std::size_t peak_of(std::uint32_t rows, int together = 1) {
    reset_memory_peak();
    run(rows, together);
    return memory_usage().peak;
  }
  void TearDown() override {
    fail_memory_charge(0);
    set_memory_budget(0);
  }
};

TEST_F(Accumulate, TheSumIsTheSameHoweverRowsAreCut) {
  std::uint32_t all = kRows;
  const auto whole = run(all);
  for (const std::uint32_t asked : {1U, 2U, 3U, 5U}) {
    for (const int together : {1, 2, 4}) {
      std::uint32_t rows = asked;
      expect_same(whole, run(rows, together));
      EXPECT_EQ(rows, asked);
    }
  }
}

TEST_F(Accumulate, MicroBatchesEvaluatedTogetherTakeTheMemoryOfOne) {
  peak_of(1);  // what is kept from then on is there
  const std::size_t one = peak_of(1), all = peak_of(kRows);
  ASSERT_LT(one, all);
  EXPECT_LT(peak_of(1, static_cast<int>(kRows)), one + (all - one) / 4);
}

TEST_F(Accumulate, AFailureAtAnyChargeHalvesTheRowsAndChangesNothingElse) {
  std::uint32_t rows = 2;
  const auto pinned = run(rows);
  int failures = 0;
  for (int nth = 1; nth < 400; nth += 23) {
    for (const std::uint32_t start : {4U, kRows}) {
      rows = start;
      shrunk = 0;
      fail_memory_charge(nth);
      expect_same(pinned, run(rows));
      fail_memory_charge(0);
      EXPECT_EQ(rows, shrunk > 0 ? start / 2 : start) << nth;
      failures += shrunk;
    }
  }
  EXPECT_GT(failures, 5);
}

TEST_F(Accumulate, ABudgetThatHoldsTwoRowsTakesTwo) {
  std::uint32_t rows = 1;
  const auto single = run(rows);
  const std::size_t two = peak_of(2), all = peak_of(kRows);
  ASSERT_LT(two, all);
  set_memory_budget(two + (all - two) / 8);
  rows = kRows;
  expect_same(single, run(rows));
  EXPECT_LT(rows, kRows);
  EXPECT_GT(shrunk, 0);
}

TEST_F(Accumulate, OneRowThatDoesNotFitIsExplained) {
  std::uint32_t rows = kRows;
  run(rows);
  set_memory_budget(memory_usage().total + 1000);
  rows = kRows;
  try {
    run(rows);
    FAIL();
  } catch (const OutOfMemory& e) {
    EXPECT_NE(
        std::string(e.what()).find("one row of 16 tokens"), std::string::npos
    ) << e.what();
  }
}

}  // namespace
}  // namespace hearth::train
