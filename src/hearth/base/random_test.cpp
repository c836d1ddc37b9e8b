#include "hearth/base/random.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace hearth {
namespace {

// The known answers of the Random123 library's philox4x32-10, in the part of
// them whose upper counter words are zero.
TEST(Random, PhiloxMatchesThePublishedAnswers) {
  const auto zero = random_block(RandomKey(0), 0);
  EXPECT_EQ(
      zero, (std::array<std::uint32_t, 4>{
                0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8
            })
  );
}

TEST(Random, APositionCanBeRestored) {
  RandomStream a{RandomKey(5)};
  for (int i = 0; i < 7; ++i) a.next_u32();
  RandomStream b{RandomKey(5), a.position()};
  for (int i = 0; i < 20; ++i) EXPECT_EQ(a.next_u32(), b.next_u32());
}

TEST(Random, FoldedKeysDiffer) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t sample = 0; sample < 100; ++sample) {
    for (std::uint64_t step = 0; step < 100; ++step) {
      seen.insert(RandomKey(1).fold(sample).fold(step).bits());
    }
  }
  EXPECT_EQ(seen.size(), 10000u);
  EXPECT_NE(RandomKey(1).fold("a").bits(), RandomKey(1).fold("b").bits());
}

TEST(Random, BelowIsUniform) {
  RandomStream r{RandomKey(9)};
  int counts[7] = {};
  constexpr int kDraws = 70000;
  for (int i = 0; i < kDraws; ++i) ++counts[r.below(7)];
  double chi2 = 0;
  for (const int c : counts) {
    const double d = c - kDraws / 7.0;
    chi2 += d * d / (kDraws / 7.0);
  }
  EXPECT_LT(chi2, 22.5);  // 6 degrees of freedom, p = 0.001
}

// Quantiles from Python's statistics.NormalDist().inv_cdf.
TEST(Random, NormalQuantileMatchesTables) {
  EXPECT_NEAR(normal_quantile(0.5), 0, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.9599639845400534, 1e-14);
  EXPECT_NEAR(normal_quantile(0.001), -3.0902323061678132, 1e-13);
  EXPECT_NEAR(normal_quantile(1e-10), -6.361340902404056, 1e-12);
  EXPECT_NEAR(normal_quantile(0.1), -1.2815515655446008, 1e-14);
  EXPECT_NEAR(normal_quantile(1e-15), -7.941345326170998, 1e-12);
}

TEST(Random, NormalsHaveTheRightMoments) {
  RandomStream r{RandomKey(3)};
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kDraws = 200000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = r.normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

}  // namespace
}  // namespace hearth
