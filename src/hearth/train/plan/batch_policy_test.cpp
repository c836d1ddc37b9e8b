#include "hearth/train/plan/batch_policy.h"

#include <gtest/gtest.h>

namespace hearth::train {
namespace {

constexpr std::size_t kBudget = 1000;

TEST(BatchPolicy, DoublesBelowHalfOfTheBudgetUpToTheMost) {
  BatchPolicy p(4, 12, false);
  p.update(4, 499, kBudget);
  EXPECT_EQ(p.tokens(), 8u);
  p.update(8, 499, kBudget);
  EXPECT_EQ(p.tokens(), 12u);
}

TEST(BatchPolicy, HalvesAboveFourFifthsDownToHalfOfTheBase) {
  BatchPolicy p(4, 12, false);
  p.update(4, 801, kBudget);
  EXPECT_EQ(p.tokens(), 2u);
  p.update(2, 801, kBudget);
  EXPECT_EQ(p.tokens(), 2u);
}

TEST(BatchPolicy, StaysInBetween) {
  BatchPolicy p(4, 12, false);
  p.update(4, 500, kBudget);
  p.update(4, 800, kBudget);
  EXPECT_EQ(p.tokens(), 4u);
}

TEST(BatchPolicy, DoesNotTryAgainWhatRanOutOfMemory) {
  BatchPolicy p(8, 32, false);
  p.update(3, 900, kBudget);
  EXPECT_EQ(p.tokens(), 3u);
  p.update(3, 100, kBudget);
  EXPECT_EQ(p.tokens(), 3u);
}

TEST(BatchPolicy, PinnedMovesOnlyWhenItMust) {
  BatchPolicy p(8, 8, true);
  p.update(8, 10, kBudget);
  EXPECT_EQ(p.tokens(), 8u);
  p.update(4, 990, kBudget);
  EXPECT_EQ(p.tokens(), 4u);
}

TEST(BatchPolicy, StateComesBack) {
  BatchPolicy p(8, 32, false), q(8, 32, false);
  p.update(5, 900, kBudget);
  q.restore(p.state());
  EXPECT_EQ(q.tokens(), 5u);
  q.update(5, 10, kBudget);
  EXPECT_EQ(q.tokens(), 5u);
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
  EXPECT_EQ(again.tokens(), 5u);
  // What had to be given up once is not tried again, so it has an end.
  for (long step = 10; step < 3000; ++step) {
    p.update(p.tokens(), step % 2 == 0 ? 900 : 100, kBudget, step);
  }
  EXPECT_LT(p.history().size(), 10u);
  EXPECT_EQ(p.history().back().tokens, p.tokens());
}

TEST(BatchPolicy, RowsOfEachLengthHaveAboutAsManyTokens) {
  BatchPolicy p(2, 8, false, 4096);
  EXPECT_EQ(p.rows(4096), 2u);
  EXPECT_EQ(p.rows(64), 128u);
  EXPECT_EQ(p.rows(3000), 2u);
  p.update(p.tokens(), 100, kBudget);
  EXPECT_EQ(p.rows(4096), 4u);
  EXPECT_EQ(p.rows(64), 256u);
  // Short rows ran out of memory: the longest are one by one from here on, and
  // the short ones no more than what fitted.
  p.update(std::uint64_t{32} * 64, 900, kBudget);
  EXPECT_EQ(p.rows(4096), 1u);
  EXPECT_EQ(p.rows(64), 32u);
  p.update(p.tokens(), 100, kBudget);
  EXPECT_EQ(p.rows(64), 32u);
}

TEST(BatchPolicy, ALongestRowStaysWhole) {
  BatchPolicy p(3, 3, false, 1000);
  p.update(3000, 900, kBudget);
  EXPECT_EQ(p.tokens(), 1000u);
  p.update(1000, 900, kBudget);
  EXPECT_EQ(p.tokens(), 1000u);
}

TEST(BatchPolicy, ReadsStatesThatCountRows) {
  BatchPolicy p(8, 32, false, 100);
  p.restore({{"rows", 4}, {"ceiling", 5}, {"history", {{0, 8}, {3, 4}}}});
  EXPECT_EQ(p.tokens(), 400u);
  p.update(400, 10, kBudget, 9);
  EXPECT_EQ(p.tokens(), 500u);
  const std::vector<BatchPolicy::Change> wanted = {
      {0, 800}, {3, 400}, {9, 500}
  };
  EXPECT_EQ(p.history(), wanted);
}

TEST(BatchPolicy, AnotherCutTakesOverTheHistoryAlone) {
  BatchPolicy tight(2, 2, false, 10);
  tight.update(10, 990, kBudget, 4);
  BatchPolicy roomy(8, 32, false, 10);
  roomy.take_over(tight.state(), 6);
  EXPECT_EQ(roomy.rows(10), 8u);
  const std::vector<BatchPolicy::Change> wanted = {{0, 20}, {4, 10}, {6, 80}};
  EXPECT_EQ(roomy.history(), wanted);
  roomy.update(80, 10, kBudget, 7);
  EXPECT_EQ(roomy.rows(10), 16u) << "what ran out before is tried again";
}

}  // namespace
}  // namespace hearth::train
