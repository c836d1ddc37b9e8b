#include "hearth/bench/statistics.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"

namespace hearth::bench {
namespace {

TEST(Statistics, QuantilesInterpolate) {
  const std::vector<double> v{4, 1, 3, 2};
  EXPECT_DOUBLE_EQ(median(v), 2.5);
  EXPECT_DOUBLE_EQ(quantile(v, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(v, 1), 4);
  EXPECT_DOUBLE_EQ(quantile(v, 0.25), 1.75);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{7}), 7);
  EXPECT_THROW(median({}), UsageError);
}

TEST(Statistics, SpreadIgnoresOneWildValue) {
  const std::vector<double> calm{10, 10, 11, 9, 10, 10, 10, 9, 11};
  std::vector<double> wild = calm;
  wild[0] = 1000;
  EXPECT_LT(spread(calm), 0.05);
  EXPECT_LT(spread(wild), 0.06);
}

// Samples whose true ratio of medians is 1.25: the interval holds it in about
// 95 of 100 draws.
TEST(Statistics, TheRatioIntervalCoversTheTruth) {
  int covered = 0;
  for (std::uint64_t trial = 0; trial < 200; ++trial) {
    RandomStream r{RandomKey(trial)};
    std::vector<double> a(25), b(25);
    for (double& x : a) x = 125 + 5 * r.normal();
    for (double& x : b) x = 100 + 5 * r.normal();
    const Interval i = ratio_interval(a, b, 400);
    covered += i.low <= 1.25 && 1.25 <= i.high ? 1 : 0;
  }
  EXPECT_GE(covered, 176);
  EXPECT_LT(covered, 200);
}

}  // namespace
}  // namespace hearth::bench
