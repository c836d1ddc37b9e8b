#include "hearth/base/progress.h"

#include <string>

#include <gtest/gtest.h>

namespace hearth {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Progress::set_clock([this] { return now; });
  }
  void TearDown() override { Progress::configure(ProgressStyle::kSilent, {}); }
  void use(ProgressStyle style) {
    Progress::configure(style, [this](std::string_view t) { out += t; });
  }
  double now = 100;
  std::string out;
};

TEST_F(ProgressTest, ShowsRateAndTimeLeft) {
  Progress p({.title = "work", .unit = "tokens", .total = 1000});
  now += 10;
  p.update(250, "loss 2.5");
  const std::string line = p.line(120);
  for (const char* part :
       {"work [", "25%", "250 of 1k tokens", "25 tokens/s", "30.0 s left",
        "loss 2.5"}) {
    EXPECT_NE(line.find(part), std::string::npos) << line;
  }
}

TEST_F(ProgressTest, WhatCountsNothingShowsItsTime) {
  Progress p({.title = "measuring", .unit = "", .total = 0});
  now += 10;
  p.update(0, "disk");
  const std::string line = p.line(120);
  EXPECT_EQ(line.find("measuring 10.0 s"), 0u) << line;
  EXPECT_TRUE(line.ends_with("disk")) << line;
}

TEST_F(ProgressTest, SilentMeansSilent) {
  use(ProgressStyle::kSilent);
  Progress p({.title = "work", .unit = "", .total = 10});
  now += 100;
  p.update(10);
  p.finish();
  EXPECT_EQ(out, "");
}

TEST_F(ProgressTest, LinesComeOnlyForLongTasksAndNowAndThen) {
  use(ProgressStyle::kLines);
  Progress p({.title = "work", .unit = "", .total = 1000});
  for (int i = 0; i < 300; ++i) {
    now += 0.1;
    p.update(static_cast<std::uint64_t>(i));
  }
  const auto lines = std::count(out.begin(), out.end(), '\n');
  EXPECT_GE(lines, 3);
  EXPECT_LE(lines, 4);
  EXPECT_EQ(out.find('\r'), std::string::npos);
}

TEST_F(ProgressTest, ABarRedrawsOneLineAndEndsIt) {
  use(ProgressStyle::kBar);
  {
    Progress p({.title = "work", .unit = "B", .total = 1 << 20});
    now += 1;
    p.update(1 << 19);
    p.finish();
  }
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1);
  EXPECT_GE(std::count(out.begin(), out.end(), '\r'), 2);
  EXPECT_NE(out.find("512.0 KiB of 1.0 MiB"), std::string::npos) << out;
}

}  // namespace
}  // namespace hearth
