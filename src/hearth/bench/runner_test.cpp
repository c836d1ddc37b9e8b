#include "hearth/bench/runner.h"

#include <gtest/gtest.h>

namespace hearth::bench {
namespace {

TEST(Runner, TakesTurnsWithThePeerAndAlternatesWhoIsFirst) {
  std::string order;
  BenchCase c;
  c.name = "x";
  c.work = 1e9;
  c.unit = "GB/s";
  c.peak = 1e6;
  c.prepare = [&order] { return [&order] { order += 'a'; }; };
  c.peer_name = "rival";
  c.prepare_peer = [&order] { return [&order] { order += 'b'; }; };
  const Row row = run_case(
      c, {.min_repeats = 4,
          .max_repeats = 4,
          .seconds = 0,
          .warm_up = 1,
          .min_peer_repeats = 4}
  );
  EXPECT_EQ(
      order,
      "ab"
      "ab"
      "ba"
      "ab"
      "ba"
  );
  EXPECT_EQ(row.repeats, 4);
  EXPECT_EQ(row.peer, "rival");
  ASSERT_TRUE(row.vs_peer);
  EXPECT_GT(*row.vs_peer, 0);
  ASSERT_TRUE(row.share_of_peak);
  EXPECT_NEAR(*row.share_of_peak, row.rate / 1e6, 1e-12);
}

TEST(Runner, WhatComesBeforeIsNotTimedAndASlowPeerRunsLess) {
  int before = 0, peers = 0;
  BenchCase c;
  c.unit = "jobs/s";
  c.prepare = [&] { return Timed([] {}, [&] { ++before; }); };
  c.prepare_peer = [&] { return [&] { ++peers; }; };
  const Row row = run_case(
      c, {.min_repeats = 10,
          .max_repeats = 10,
          .seconds = 0,
          .warm_up = 2,
          .min_peer_repeats = 3}
  );
  EXPECT_EQ(before, 12);
  EXPECT_EQ(peers, 4);
  EXPECT_EQ(row.repeats, 10);
}

TEST(Runner, WhatWasNotMeasuredIsAbsent) {
  BenchCase c;
  c.name = "x";
  c.work = 1;
  c.unit = "jobs/s";
  c.prepare = [] { return [] {}; };
  const Row row = run_case(
      c, {.min_repeats = 3, .max_repeats = 3, .seconds = 0, .warm_up = 0}
  );
  const Json j = to_json(row);
  for (const char* key : {"share_of_peak", "peer", "vs_peer", "isa"}) {
    EXPECT_FALSE(j.contains(key)) << key;
  }
  EXPECT_EQ(j["case"], "x");
  EXPECT_NE(table_line(row, 4).find("jobs/s"), std::string::npos);
  EXPECT_NE(table_head(4).find("of peak"), std::string::npos);
}

}  // namespace
}  // namespace hearth::bench
