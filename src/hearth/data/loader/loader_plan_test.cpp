#include "hearth/data/loader/loader_plan.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::data {
namespace {

TEST(LoaderOrder, PermutationsAreOneToOneAndDiffer) {
  for (std::uint64_t n : {1u, 2u, 3u, 5u, 16u, 17u, 1000u, 4097u}) {
    std::vector<std::uint64_t> seen(n), other(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      seen[i] = Permutation(n, RandomKey(1))(i);
      other[i] = Permutation(n, RandomKey(2))(i);
    }
    EXPECT_TRUE(n <= 16 || seen != other);
    std::sort(seen.begin(), seen.end());
    for (std::uint64_t i = 0; i < n; ++i) ASSERT_EQ(seen[i], i);
  }
}

TEST(LoaderOrder, PermutationsLookRandom) {
  // The mean displacement of a random permutation of n is n / 3.
  const std::uint64_t n = 3000;
  const Permutation p(n, RandomKey(8));
  double moved = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    moved += std::abs(static_cast<double>(p(i)) - static_cast<double>(i));
  }
  EXPECT_NEAR(moved / n, n / 3.0, n / 30.0);
}

// The textbook rule, by trying every bin.
std::vector<std::uint32_t> plain_best_fit(
    std::vector<std::uint32_t> items,
    std::vector<std::uint32_t> room
) {
  std::stable_sort(items.begin(), items.end(), std::greater<>());
  for (const auto item : items) {
    std::size_t best = room.size();
    for (std::size_t b = 0; b < room.size(); ++b) {
      if (room[b] >= item && (best == room.size() || room[b] < room[best])) {
        best = b;
      }
    }
    if (best < room.size()) room[best] -= item;
  }
  return room;
}

TEST(LoaderPack, IsBestFitDecreasing) {
  RandomStream random{RandomKey(3)};
  for (int round = 0; round < 200; ++round) {
    std::vector<DocumentPart> pieces;
    std::vector<std::uint32_t> items, capacities;
    for (std::uint64_t i = 0, n = random.below(60); i < n; ++i) {
      const auto length = static_cast<std::uint32_t>(1 + random.below(90));
      pieces.push_back({0, 0, length, i});
      items.push_back(length);
    }
    for (std::uint64_t i = 0, n = random.below(20); i < n; ++i) {
      capacities.push_back(random.below(2) ? 64 : 100);
    }
    const auto expected = plain_best_fit(items, capacities);
    const std::size_t count = pieces.size();
    const auto bins = best_fit_decreasing(pieces, capacities);
    std::size_t placed = 0;
    for (std::size_t b = 0; b < bins.size(); ++b) {
      std::uint32_t used = 0;
      for (const auto& p : bins[b]) used += p.length;
      ASSERT_EQ(capacities[b] - used, expected[b]);
      placed += bins[b].size();
    }
    ASSERT_EQ(placed + pieces.size(), count) << "no piece may be lost";
  }
}

TEST(LoaderPack, WaitingPiecesGoFirst) {
  std::vector<DocumentPart> pieces = {
      {0, 0, 3, 1}, {0, 0, 10, 2}, {0, 0, 9, 3}
  };
  const auto bins = best_fit_decreasing(pieces, {10}, 1);
  ASSERT_EQ(bins[0].size(), 1u);
  EXPECT_EQ(bins[0][0].document, 1u);
  EXPECT_EQ(pieces.size(), 2u);
}

TEST(LoaderShapes, ProportionsHoldOnAverageWhenBlocksDoNotDivide) {
  const ShapeSchedule shapes(
      {{64, .55}, {128, .3}, {256, .15}}, 25, RandomKey(5)
  );
  std::uint64_t counts[3] = {0, 0, 0};
  const std::uint64_t steps = 13000;
  for (std::uint64_t s = 0; s < steps; ++s) {
    const auto length = shapes.length_at(s);
    ++counts[length == 64 ? 0 : length == 128 ? 1 : 2];
  }
  EXPECT_NEAR(static_cast<double>(counts[0]) / steps, .55, .01);
  EXPECT_NEAR(static_cast<double>(counts[1]) / steps, .30, .01);
  EXPECT_NEAR(static_cast<double>(counts[2]) / steps, .15, .01);
  EXPECT_EQ(shapes.guarantee(), 25u);
}

using Shapes = std::vector<Shape>;

// The share of each length, having looked for each in every window of steps.
std::map<std::uint32_t, double> shares_of(
    const Shapes& shapes,
    std::uint64_t guarantee
) {
  const ShapeSchedule schedule(shapes, guarantee, RandomKey(5));
  EXPECT_EQ(schedule.guarantee(), guarantee);
  std::map<std::uint32_t, double> shares;
  std::map<std::uint32_t, std::uint64_t> next;  // the first step not to miss
  const std::uint64_t steps = 20000;
  for (std::uint64_t s = 0; s < steps; ++s) {
    const auto length = schedule.length_at(s);
    shares[length] += 1.0 / steps;
    next[length] = s + 1;
    for (const auto& shape : shapes) {
      EXPECT_LT(s + 1, next[shape.length] + guarantee) << shape.length;
    }
  }
  return shares;
}

// What a short guarantee takes for a rare length is taken from the others
// alike: 0.05 becomes 0.1, and 0.9 are shared as 0.95 were.
TEST(LoaderShapes, AGuaranteeTakesFromTheFrequentLengthsAlike) {
  auto shares = shares_of({{64, .4}, {128, .4}, {256, .15}, {512, .05}}, 10);
  EXPECT_NEAR(shares[64], .4 * .9 / .95, .001);
  EXPECT_NEAR(shares[128], .4 * .9 / .95, .001);
  EXPECT_NEAR(shares[256], .15 * .9 / .95, .001);
  EXPECT_NEAR(shares[512], .1, .001);
}

TEST(LoaderShapes, AGuaranteeThatSharesKeepAnywayChangesNone) {
  const Shapes shapes = {{32, .4}, {64, .4}, {128, .15}, {256, .05}};
  for (const std::uint64_t guarantee : {20u, 30u, 39u}) {
    auto shares = shares_of(shapes, guarantee);
    for (const auto& s : shapes) {
      EXPECT_NEAR(shares[s.length], s.probability, .001) << guarantee;
    }
  }
}

TEST(LoaderShapes, LengthsKeepTheirOrderOfFrequencyUnderAGuarantee) {
  auto shares = shares_of({{64, .6}, {128, .3}, {256, .06}, {512, .04}}, 19);
  // Once in 19 steps is more than 0.04 and less than 0.06.
  const double rest = (1 - 1. / 19) / .96;
  EXPECT_NEAR(shares[64], .6 * rest, .001);
  EXPECT_NEAR(shares[128], .3 * rest, .001);
  EXPECT_NEAR(shares[256], .06 * rest, .001);
  EXPECT_NEAR(shares[512], 1. / 19, .001);
}

TEST(LoaderShapes, TheTightestGuaranteeIsKept) {
  for (const std::uint64_t guarantee : {5u, 6u, 7u}) {
    shares_of({{64, .9}, {128, .05}, {256, .05}}, guarantee);
  }
}

// A run that goes on asks for a later step first.
TEST(LoaderShapes, AStepHasItsLengthInWhateverOrderItIsAskedFor) {
  const Shapes shapes = {{64, .6}, {128, .3}, {256, .1}};
  const ShapeSchedule forward(shapes, 12, RandomKey(7));
  const ShapeSchedule backward(shapes, 12, RandomKey(7));
  std::vector<std::uint32_t> lengths;
  for (std::uint64_t s = 0; s < 100; ++s) {
    lengths.push_back(forward.length_at(s));
    EXPECT_EQ(forward.length_at(s), lengths.back());
  }
  for (std::uint64_t s = 100; s-- > 0;) {
    EXPECT_EQ(backward.length_at(s), lengths[s]);
  }
}

}  // namespace
}  // namespace hearth::data
