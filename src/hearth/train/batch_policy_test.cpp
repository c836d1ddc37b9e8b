#include "hearth/train/batch_policy.h"

#include <gtest/gtest.h>

namespace hearth::train {
namespace {

constexpr std::size_t kBudget = 1000;

TEST(BatchPolicy, DoublesBelowHalfOfTheBudgetUpToTheMost) {
  BatchPolicy p(4, 12, false);
  p.update(4, 499, kBudget);
  EXPECT_EQ(p.rows(), 8u);
  p.update(8, 499, kBudget);
  EXPECT_EQ(p.rows(), 12u);
}

TEST(BatchPolicy, HalvesAboveFourFifthsDownToHalfOfTheBase) {
  BatchPolicy p(4, 12, false);
  p.update(4, 801, kBudget);
  EXPECT_EQ(p.rows(), 2u);
  p.update(2, 801, kBudget);
  EXPECT_EQ(p.rows(), 2u);
}

TEST(BatchPolicy, StaysInBetween) {
  BatchPolicy p(4, 12, false);
  p.update(4, 500, kBudget);
  p.update(4, 800, kBudget);
  EXPECT_EQ(p.rows(), 4u);
}

TEST(BatchPolicy, DoesNotTryAgainWhatRanOutOfMemory) {
  BatchPolicy p(8, 32, false);
  p.update(3, 900, kBudget);
  EXPECT_EQ(p.rows(), 3u);
  p.update(3, 100, kBudget);
  EXPECT_EQ(p.rows(), 3u);
}

TEST(BatchPolicy, PinnedMovesOnlyWhenItMust) {
  BatchPolicy p(8, 8, true);
  p.update(8, 10, kBudget);
  EXPECT_EQ(p.rows(), 8u);
  p.update(4, 990, kBudget);
  EXPECT_EQ(p.rows(), 4u);
}

TEST(BatchPolicy, StateComesBack) {
  BatchPolicy p(8, 32, false), q(8, 32, false);
  p.update(5, 900, kBudget);
  q.restore(p.state());
  EXPECT_EQ(q.rows(), 5u);
  q.update(5, 10, kBudget);
  EXPECT_EQ(q.rows(), 5u);
}

TEST(BatchPolicy, KeepsTheHistoryOfItsChanges) {
  using Change = BatchPolicy::Change;
  BatchPolicy p(4, 16, false);
  p.update(4, 600, kBudget, 1);
  p.update(4, 100, kBudget, 2);
  p.update(5, 900, kBudget, 9);
  const std::vector<Change> wanted = {{0, 4}, {2, 8}, {9, 5}};
  EXPECT_EQ(p.history(), wanted);
  BatchPolicy again(1, 16, false);
  again.restore(parse_json(to_json_line(p.state()), "state"));
  EXPECT_EQ(again.history(), wanted);
  EXPECT_EQ(again.rows(), 5u);
  // What had to be given up once is not tried again, so it has an end.
  for (long step = 10; step < 3000; ++step) {
    p.update(p.rows(), step % 2 == 0 ? 900 : 100, kBudget, step);
  }
  EXPECT_LT(p.history().size(), 10u);
  EXPECT_EQ(p.history().back().rows, p.rows());
}

}  // namespace
}  // namespace hearth::train
