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

}  // namespace
}  // namespace hearth::train
