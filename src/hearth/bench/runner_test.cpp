#include "hearth/bench/runner.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

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

TEST(Runner, TheFastestRepeatStandsBesideTheMedian) {
  int calls = 0;
  BenchCase c;
  c.work = 1, c.unit = "jobs/s", c.peak = 1e6;
  c.prepare = [&] {
    return [&] {
      const int ms = ++calls == 3 ? 2 : 12;
      std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    };
  };
  const Row row = run_case(
      c, {.min_repeats = 5, .max_repeats = 5, .seconds = 0, .warm_up = 0}
  );
  EXPECT_GT(row.best_rate, row.rate * 1.5);
  EXPECT_NEAR(*row.best_share_of_peak, row.best_rate / 1e6, 1e-12);
  EXPECT_EQ(to_json(row)["best_rate"], row.best_rate);
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

TEST(Runner, RepeatsAndALimitBoundACase) {
  int ours = 0, peers = 0;
  BenchCase c;
  c.unit = "tokens/s";
  c.work = 1, c.repeats = 5;
  c.prepare = [&] { return [&] { ++ours; }; };
  c.prepare_peer = [&] { return [&] { ++peers; }; };
  EXPECT_EQ(run_case(c, {.repeats = 2}).repeats, 2);
  EXPECT_EQ(ours, 3);  // and once to warm up
  EXPECT_EQ(peers, 3);
  // A limit that is over at once leaves one of each side.
  EXPECT_EQ(run_case(c, {.limit = 1e-9}).repeats, 1);
}

TEST(Runner, APeerThatCannotRunLeavesOursAlone) {
  BenchCase c;
  c.unit = "tokens/s";
  c.work = 1, c.repeats = 1;
  c.prepare = [] { return [] {}; };
  c.prepare_peer = []() -> Timed { throw Error("no torch", "install it"); };
  const Row row = run_case(c, {.repeats = 1});
  EXPECT_EQ(row.peer_missing, "no torch (install it)");
  EXPECT_FALSE(to_json(row).contains("vs_peer"));
}

TEST(Runner, APeerThatEndsLeavesOursAlone) {
  BenchCase c;
  int turns = 0;
  c.prepare = [] { return [] {}; };
  c.prepare_peer = [&] {
    return [&] {
      if (++turns == 3) throw Error("it ended");
    };
  };
  const Row row = run_case(c, {.min_repeats = 6, .seconds = 0});
  EXPECT_EQ(row.repeats, 6);
  EXPECT_EQ(row.peer_missing, "it ended");
  EXPECT_FALSE(row.vs_peer);
}

TEST(Runner, BothSidesMayAddWhatTheyKnow) {
  BenchCase c;
  c.unit = "tokens/s";
  c.work = 100;
  c.prepare = [] {
    Timed t([] {});
    t.after = [](Row& row) {
      row.overhead = 0.02;
      row.peak_mib = 100;
      row.ops = {{"Linear", 3, 1.5}};
    };
    return t;
  };
  c.prepare_peer = [] {
    Timed t([] {});
    t.after = [](Row& row) { row.peer_peak_mib = 200; };
    return t;
  };
  const Row row = run_case(c, {.repeats = 2});
  const Json j = to_json(row);
  EXPECT_EQ(j["overhead"], 0.02);
  EXPECT_EQ(j["peer_peak_mib"], 200);
  EXPECT_TRUE(j.contains("peer_rate"));
  const auto line = table_line(row, 4);
  EXPECT_NE(line.find("outside kernels 2.0%"), std::string::npos);
  EXPECT_NE(line.find("0.50x"), std::string::npos);
  EXPECT_EQ(j["ops"][0]["ms"], 1.5);
  EXPECT_NE(op_lines(row, 4).find("Linear"), std::string::npos);
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
