#include "hearth/train/loop/save_schedule.h"

#include <gtest/gtest.h>

namespace hearth::train {
namespace {

TEST(SaveSchedule, KeepsToTheRecipesStepsWhateverTheTime) {
  const SaveSchedule s(5, 1000, 0);
  EXPECT_FALSE(s.due(4, 1e6));
  EXPECT_TRUE(s.due(5, 0.1));
  EXPECT_TRUE(s.due(10, 0.1));
}

TEST(SaveSchedule, ByItselfATenthOfTheRunButNotBeforeAMinute) {
  SaveSchedule s(0, 1000, 0);
  EXPECT_FALSE(s.due(99, 70));
  EXPECT_FALSE(s.due(100, 59));
  EXPECT_TRUE(s.due(100, 60));
  s.saved(130, 100, 0.1);
  EXPECT_FALSE(s.due(229, 200));
  EXPECT_TRUE(s.due(230, 200));
}

TEST(SaveSchedule, ByItselfAfterTenMinutesAtTheLatest) {
  SaveSchedule s(0, 100000, 1000);
  EXPECT_FALSE(s.due(7, 1599));
  EXPECT_TRUE(s.due(7, 1600));
  s.saved(7, 1610, 1);
  EXPECT_FALSE(s.due(8, 1700));
  EXPECT_TRUE(s.due(8, 2210));
}

TEST(SaveSchedule, ASlowDiskIsAskedLessOften) {
  SaveSchedule s(0, 100, 0);
  s.saved(10, 0, 40);
  EXPECT_FALSE(s.due(90, 799));
  EXPECT_TRUE(s.due(90, 800));
}

}  // namespace
}  // namespace hearth::train
