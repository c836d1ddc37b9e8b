#include "hearth/infer/sampler.h"

#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

using Logits = std::vector<float>;

std::map<int, double> frequencies(
    const SamplerOptions& options,
    const Logits& logits,
    int draws = 40000,
    std::vector<std::int32_t> seen = {}
) {
  Sampler sampler(options);
  std::map<int, double> f;
  for (int i = 0; i < draws; ++i) {
    f[sampler.pick(logits, seen, static_cast<std::uint64_t>(i))] += 1.0 / draws;
  }
  return f;
}

// Five standard deviations of a share of the draws.
void expect_share(double got, double want, int draws = 40000) {
  EXPECT_NEAR(got, want, 5 * std::sqrt(want * (1 - want) / draws) + 1e-9);
}

TEST(Sampler, GreedyTakesTheLargestAndOfEqualOnesTheLowestId) {
  EXPECT_EQ(greedy(Logits{1, 3, 2}), 1);
  EXPECT_EQ(greedy(Logits{1, 3, 3, 3}), 1);
  EXPECT_EQ(greedy(Logits{-INFINITY, -5, -INFINITY}), 1);
  Sampler sampler({});
  EXPECT_EQ(sampler.pick(Logits{0, 0}, {}, 9), 0);
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const Logits logits{std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  auto f = frequencies({.temperature = 1, .seed = 3}, logits);
  expect_share(f[0], 1.0 / 8);
  expect_share(f[1], 2.0 / 8);
  expect_share(f[2], 5.0 / 8);
}

TEST(Sampler, TemperatureTakesPowersOfTheProbabilities) {
  const Logits logits{std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  auto f = frequencies({.temperature = 0.5, .seed = 3}, logits);
  expect_share(f[0], 1.0 / 30);
  expect_share(f[1], 4.0 / 30);
  expect_share(f[2], 25.0 / 30);
}

TEST(Sampler, TopKKeepsJustThatManyTiesByLowestId) {
  const Logits logits{1, 2, 2, 2, 0};
  auto f =
      frequencies({.temperature = 1, .top_k = 2, .seed = 1}, logits, 10000);
  ASSERT_EQ(f.size(), 2u);
  expect_share(f[1], 0.5, 10000);
  expect_share(f[2], 0.5, 10000);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatHoldsIt) {
  // 0.5, 0.3, 0.15, 0.05, in another order.
  const Logits logits{
      std::log(0.05f), std::log(0.5f), std::log(0.15f), std::log(0.3f)
  };
  auto f = frequencies({.temperature = 1, .top_p = 0.7, .seed = 5}, logits);
  ASSERT_EQ(f.size(), 2u);
  expect_share(f[1], 0.5 / 0.8);
  expect_share(f[3], 0.3 / 0.8);
  f = frequencies({.temperature = 1, .top_p = 0.01, .seed = 5}, logits, 100);
  EXPECT_EQ(f.size(), 1u);
}

TEST(Sampler, TopPReachesPastTheFirstRankedBlock) {
  // 2000 equal tokens: 60 % of them are the first 1200 ids.
  const Logits logits(2000, 1.0f);
  const auto f =
      frequencies({.temperature = 1, .top_p = 0.6, .seed = 5}, logits, 10000);
  EXPECT_LT(f.rbegin()->first, 1200);
  EXPECT_GT(f.size(), 1190u);
}

TEST(Sampler, MinPIsMeasuredAgainstTheMostLikely) {
  const Logits logits{
      std::log(0.05f), std::log(0.5f), std::log(0.15f), std::log(0.3f)
  };
  auto f = frequencies({.temperature = 1, .min_p = 0.29, .seed = 5}, logits);
  ASSERT_EQ(f.size(), 3u);
  expect_share(f[2], 0.15 / 0.95);
  EXPECT_EQ(f.count(0), 0u);
}

TEST(Sampler, TypicalKeepsWhatSurprisesAsMuchAsUsual) {
  // Surprises 0.69, 1.2, 1.9, 3.0 where the entropy is 1.14 nats: the second
  // is nearest, then the first.
  const Logits logits{
      std::log(0.05f), std::log(0.5f), std::log(0.15f), std::log(0.3f)
  };
  auto f =
      frequencies({.temperature = 1, .typical_p = 0.25, .seed = 5}, logits);
  ASSERT_EQ(f.size(), 1u);
  EXPECT_EQ(f.begin()->first, 3);
  f = frequencies({.temperature = 1, .typical_p = 0.6, .seed = 5}, logits);
  ASSERT_EQ(f.size(), 2u);
  expect_share(f[1], 0.5 / 0.8);
  expect_share(f[3], 0.3 / 0.8);
  // Without the most likely one, min-p is of the likeliest that is left.
  f = frequencies(
      {.temperature = 1, .typical_p = 0.25, .min_p = 1, .seed = 5}, logits, 100
  );
  EXPECT_EQ(f.begin()->first, 3);
}

TEST(Sampler, FrequencyCountsAndPresenceDoesNot) {
  const std::vector<std::int32_t> seen{1, 0, 0, 1};
  const auto pick = [&](const SamplerOptions& o, std::size_t prompt) {
    return Sampler(o).pick(Logits{3, 2.5f, 0}, seen, 0, prompt);
  };
  EXPECT_EQ(pick({.frequency_penalty = 0.4}, 0), 0);
  // One 0 and one 1 were made, the others are the prompt's.
  EXPECT_EQ(pick({.frequency_penalty = 0.4}, 2), 0);
  EXPECT_EQ(pick({.frequency_penalty = 1}, 3), 0);
  EXPECT_EQ(pick({.presence_penalty = 4}, 0), 2);
  EXPECT_EQ(pick({.presence_penalty = 4}, 3), 0);
  EXPECT_EQ(pick({.presence_penalty = 4}, 4), 0);
  EXPECT_EQ(pick({.presence_penalty = -4}, 3), 1);
  // Two 0s cost 0.6, which is more than the distance to 1.
  const std::vector<std::int32_t> zeros{0, 0};
  EXPECT_EQ(
      Sampler({.frequency_penalty = 0.3}).pick(Logits{3, 2.5f}, zeros, 0), 1
  );
  EXPECT_EQ(
      Sampler({.presence_penalty = 0.3}).pick(Logits{3, 2.5f}, zeros, 0), 0
  );
}

TEST(Sampler, BiasIsAddedAndForbids) {
  const Logits logits{0, 0, std::log(2.0f)};
  Sampler sampler({.temperature = 1, .seed = 4}, {{0, std::log(5.0f)}});
  std::map<int, double> f;
  for (std::uint64_t i = 0; i < 40000; ++i) {
    f[sampler.pick(logits, {}, i)] += 1 / 40000.0;
  }
  expect_share(f[0], 5.0 / 8);
  expect_share(f[1], 1.0 / 8);
  expect_share(f[2], 2.0 / 8);
  EXPECT_EQ(Sampler({}, {{2, -INFINITY}}).pick(logits, {}, 0), 0);
  EXPECT_EQ(Sampler({}, {{7, 100.0f}}).pick(logits, {}, 0), 2);
  EXPECT_THROW(Sampler({}, {{1, NAN}}), UsageError);
}

TEST(Sampler, PenaltiesComeBeforeTheBias) {
  // 4 halved is 2, and 1 more is 3; the other order would give 2.5.
  Sampler sampler({.repeat_penalty = 2}, {{0, 1.0f}});
  const std::vector<std::int32_t> seen{0};
  EXPECT_EQ(sampler.pick(Logits{4, 2.9f}, seen, 0), 0);
  EXPECT_EQ(sampler.pick(Logits{4, 3.1f}, seen, 0), 1);
}

TEST(Sampler, PenaltyMakesBothSignsLessLikely) {
  Sampler sampler({.repeat_penalty = 2});
  EXPECT_EQ(sampler.pick(Logits{3, 2}, {}, 0), 0);
  EXPECT_EQ(sampler.pick(Logits{3, 2}, std::vector<std::int32_t>{0, 0}, 0), 1);
  EXPECT_EQ(sampler.pick(Logits{-1, -1.5}, std::vector<std::int32_t>{0}, 0), 1);
  // Once, however often it was seen: 3 / 2 stays above 1.
  EXPECT_EQ(sampler.pick(Logits{3, 1}, std::vector<std::int32_t>{0, 0}, 0), 0);
}

TEST(Sampler, SeedAndPositionDecideTheDraw) {
  const Logits logits(1000, 0.0f);
  const auto draw = [&](std::uint64_t seed, std::uint64_t position) {
    return Sampler({.temperature = 1, .seed = seed}).pick(logits, {}, position);
  };
  EXPECT_EQ(draw(1, 7), draw(1, 7));
  int same_seed = 0, same_position = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    same_seed += draw(1, i) == draw(1, i + 1) ? 1 : 0;
    same_position += draw(i, 7) == draw(i + 1, 7) ? 1 : 0;
  }
  EXPECT_LT(same_seed, 5);
  EXPECT_LT(same_position, 5);
}

TEST(Sampler, LogProbsAreTheSoftmaxOfTheModel) {
  const Logits logits{0, std::log(2.0f), std::log(5.0f), std::log(2.0f)};
  const auto top = top_log_probs(logits, 3);
  ASSERT_EQ(top.size(), 3u);
  EXPECT_EQ(top[0].id, 2);
  EXPECT_EQ(top[1].id, 1);
  EXPECT_EQ(top[2].id, 3);
  EXPECT_NEAR(top[0].log_prob, std::log(0.5), 1e-6);
  EXPECT_NEAR(top[1].log_prob, std::log(0.2), 1e-6);
  EXPECT_NEAR(log_sum_exp(logits), std::log(10.0), 1e-6);
}

TEST(Sampler, BrokenLogitsAreRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  Sampler drawing({.temperature = 1});
  for (const float bad : {kNan, INFINITY}) {
    const Logits logits{1, bad, 2};
    EXPECT_THROW(greedy(logits), Error);
    EXPECT_THROW(drawing.pick(logits, {}, 0), Error);
    EXPECT_THROW(top_log_probs(logits, 1), Error);
  }
  EXPECT_THROW(greedy(Logits{-INFINITY, -INFINITY}), Error);
  EXPECT_THROW(greedy(Logits{}), UsageError);
}

// A number that no float holds, in any option, never makes a logit infinite.
TEST(Sampler, ExtremeOptionsStillChoose) {
  const Logits logits{1, 0, -2, -INFINITY};
  const std::vector<std::int32_t> seen{0, 1, 1, 3};
  const auto pick = [&](SamplerOptions options) {
    options.seed = 3;
    return Sampler(options).pick(logits, seen, 0);
  };
  EXPECT_EQ(pick({.presence_penalty = 1e300}), 2);
  EXPECT_EQ(pick({.frequency_penalty = 1.7e308}), 2);
  // All that came before is favoured without end: of equal ones the lowest id.
  EXPECT_EQ(pick({.presence_penalty = -1e39}), 0);
  EXPECT_EQ(pick({.frequency_penalty = -1.7e308}), 0);
  EXPECT_EQ(pick({.repeat_penalty = 1e300}), 0);
  EXPECT_EQ(pick({.repeat_penalty = 1e-300}), 0);
  EXPECT_EQ(pick({.temperature = 5e-324}), 0);
  EXPECT_EQ(pick({.temperature = 5e-324, .typical_p = 0.5}), 0);
  EXPECT_NE(pick({.temperature = 1e308}), 3);
  EXPECT_EQ(
      Sampler(
          {}, {{2, std::numeric_limits<float>::max()}}
      ).pick(Logits{1, 0, 3e38F}, {}, 0),
      2
  );
}

TEST(Sampler, OptionsAreChecked) {
  EXPECT_THROW(Sampler({.temperature = -1}), UsageError);
  EXPECT_THROW(Sampler({.top_k = -1}), UsageError);
  EXPECT_THROW(Sampler({.top_p = 0}), UsageError);
  EXPECT_THROW(Sampler({.top_p = 1.5}), UsageError);
  EXPECT_THROW(Sampler({.min_p = 2}), UsageError);
  EXPECT_THROW(Sampler({.typical_p = 0}), UsageError);
  EXPECT_THROW(Sampler({.repeat_penalty = 0}), UsageError);
  EXPECT_THROW(Sampler({.frequency_penalty = NAN}), UsageError);
  EXPECT_THROW(Sampler({.presence_penalty = INFINITY}), UsageError);
}

}  // namespace
}  // namespace hearth::infer
