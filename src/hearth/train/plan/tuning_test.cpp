#include "hearth/train/plan/tuning.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace hearth::train {
namespace {

constexpr std::size_t kMib = 1 << 20;

TuneSpace space() {
  return {
      .step_rows = 64,
      .least_rows = 1,
      .precisions = {"bf16", "fp32"},
      .policies = {"none", "all"},
      .threads = {2, 1}
  };
}

// A machine whose rate rises to `knee` rows and falls slowly beyond; blocks
// computed again cost a quarter, fp32 half, a missing core half.
double rate_of(const Setting& s, std::int64_t knee) {
  double rate = s.rows <= knee ? 100.0 * static_cast<double>(s.rows)
                               : 100.0 * static_cast<double>(knee) - 1;
  if (s.checkpointing == "all") rate *= 0.75;
  if (s.precision == "fp32") rate *= 0.5;
  return s.threads == 1 ? rate / 2 : rate;
}

std::size_t bytes_of(const Setting& s) {
  const auto rows = static_cast<std::size_t>(s.rows);
  return rows * (s.checkpointing == "all" ? 1 : 4) * kMib;
}

TuneCalls calls_for(std::int64_t knee, std::size_t budget) {
  TuneCalls c;
  c.budget = budget;
  c.predict = bytes_of;
  c.measure = [knee](const Setting& s) {
    TuneRow r;
    r.tokens_per_s = rate_of(s, knee);
    r.peak = bytes_of(s);
    return r;
  };
  return c;
}

TEST(Tune, TakesTheFastestAndNotTheLargest) {
  const auto result = tune(space(), calls_for(8, 0));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.rows[*result.best].setting.rows, 8);
  EXPECT_EQ(result.rows[*result.best].setting.precision, "bf16");
  EXPECT_TRUE(result.complete);
  // Two sizes beyond the knee were tried, and the ladder ended there.
  std::int64_t most = 0;
  for (const auto& r : result.rows) most = std::max(most, r.setting.rows);
  EXPECT_EQ(most, 32);
}

TEST(Tune, TriesEachOfTheOtherSettingsAtTheFastestRows) {
  const auto result = tune(space(), calls_for(8, 0));
  const auto tried = [&](const Setting& s) {
    return std::ranges::count(result.rows, s, &TuneRow::setting);
  };
  EXPECT_EQ(tried({8, "all", "bf16", 2}), 1);
  EXPECT_EQ(tried({8, "none", "fp32", 2}), 1);
  EXPECT_EQ(tried({8, "none", "bf16", 1}), 1);
}

TEST(Tune, StopsAtTheMemoryEdgeAndGoesOnWithBlocksAgain) {
  // Without checkpointing 4 rows fit, with it 16; more rows are faster by far.
  const auto result = tune(space(), calls_for(64, 16 * kMib));
  for (const auto& r : result.rows) {
    if (r.outcome != TuneOutcome::measured) continue;
    EXPECT_LE(r.peak, 16 * kMib);
  }
  EXPECT_TRUE(std::ranges::any_of(result.rows, [](const auto& r) {
    return r.outcome == TuneOutcome::too_large;
  }));
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.rows[*result.best].setting, (Setting{16, "all", "bf16", 2}));
}

TEST(Tune, HalvesTheRowsUntilTheyFit) {
  TuneSpace s = space();
  s.least_rows = s.step_rows = 8;
  const auto best = [&](std::size_t budget) {
    const auto result = tune(s, calls_for(64, budget));
    return result.best ? result.rows[*result.best].setting : Setting{.rows = 0};
  };
  // Two rows fit as they are; blocks computed again make room for all.
  EXPECT_EQ(best(9 * kMib), (Setting{8, "all", "bf16", 2}));
  s.policies = {"none"};
  EXPECT_EQ(best(9 * kMib).rows, 2);
  EXPECT_EQ(best(4 * kMib).rows, 1);
  EXPECT_EQ(best(3 * kMib).rows, 0);
  // Where not even one row fits without: one with blocks computed again.
  s.policies = {"none", "all"};
  EXPECT_EQ(best(kMib), (Setting{1, "all", "bf16", 2}));
  s.floor_rows = 2;
  EXPECT_EQ(best(kMib).rows, 0);
  EXPECT_EQ(best(3 * kMib).rows, 2);
}

TEST(Tune, TheRecipesOwnRowsAreTriedFirst) {
  TuneSpace s = space();
  s.least_rows = s.step_rows = 8;
  s.own_rows = 3;
  const auto result = tune(s, calls_for(3, 0));
  EXPECT_EQ(result.rows.front().setting.rows, 3);
  EXPECT_EQ(result.rows[*result.best].setting.rows, 3);
}

TEST(Tune, AMeasurementThatRanOutOfMemoryEndsTheLadder) {
  auto calls = calls_for(64, 0);
  calls.measure = [inner = calls.measure](const Setting& s) {
    TuneRow r = inner(s);
    if (s.rows > 4) {
      r = {};
      r.outcome = TuneOutcome::out_of_memory;
    }
    return r;
  };
  const auto result = tune(space(), calls);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.rows[*result.best].setting.rows, 4);
  for (const auto& r : result.rows) EXPECT_LE(r.setting.rows, 8);
}

TEST(Tune, OfEquallyFastOnesTheSmallestWins) {
  std::vector<TuneRow> rows(3);
  rows[0].tokens_per_s = 1000, rows[0].peak = 900;
  rows[1].tokens_per_s = 995, rows[1].peak = 500;
  rows[2].tokens_per_s = 900, rows[2].peak = 100;
  EXPECT_EQ(fastest(rows), 1u);
}

TEST(Tune, WhatWasMeasuredBeforeItWasStoppedStands) {
  auto calls = calls_for(64, 0);
  int left = 3;
  calls.stop = [&] { return left-- == 0; };
  const auto result = tune(space(), calls);
  EXPECT_FALSE(result.complete);
  ASSERT_EQ(result.rows.size(), 3u);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(result.rows[*result.best].setting.rows, 4);
}

TEST(Tune, RowsThatWereNotMeasuredHaveNoFigures) {
  TuneRow row;
  row.outcome = TuneOutcome::too_large;
  const Json j = to_json(row);
  EXPECT_FALSE(j.contains("rate"));
  EXPECT_FALSE(j.contains("peak_mib"));
  EXPECT_EQ(j["outcome"], "would not fit");
}

}  // namespace
}  // namespace hearth::train
