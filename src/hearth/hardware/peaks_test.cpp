#include "hearth/hardware/peaks.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/temp_folder_test.h"

namespace hearth::hardware {
namespace {

class PeaksTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("HEARTH_CACHE", folder.c_str(), 1); }
  void TearDown() override { unsetenv("HEARTH_CACHE"); }
  const TempFolder temp;
  const std::filesystem::path folder = temp.path();
};

TEST_F(PeaksTest, ComeBackForTheSameMachineOnly) {
  Peaks p{.date = "2026-01-01T00:00:00Z", .machine = "here"};
  p.arithmetic = {{"avx2", "fp32", 2, 100}, {"avx512", "fp32", 2, 230}};
  p.bandwidth = {{"read", 2, 47.5}};
  p.disk_read_gb_s = 1.5;
  p.training = {
      {"bf16", 2, 256, 0.6}, {"bf16", 2, 64, 0.3}, {"fp32", 2, 64, 0.4}
  };
  EXPECT_FALSE(load_peaks("here"));
  store_peaks(p);
  EXPECT_FALSE(load_peaks("there"));
  const auto back = load_peaks("here");
  ASSERT_TRUE(back);
  EXPECT_EQ(back->date, p.date);
  EXPECT_DOUBLE_EQ(best_gops(*back, "fp32", 2), 230);
  EXPECT_DOUBLE_EQ(best_gops(*back, "fp32", 2, "avx2"), 100);
  EXPECT_DOUBLE_EQ(best_gops(*back, "bf16", 2), 0);
  EXPECT_DOUBLE_EQ(bandwidth_gb_s(*back, "read", 2), 47.5);
  EXPECT_DOUBLE_EQ(*back->disk_read_gb_s, 1.5);
  const auto shares = training_shares(*back, "bf16", 2);
  ASSERT_EQ(shares.size(), 2u);
  EXPECT_EQ(shares[0].dim, 64);
  EXPECT_DOUBLE_EQ(shares[1].share, 0.6);
  EXPECT_TRUE(training_shares(*back, "bf16", 1).empty());
}

TEST_F(PeaksTest, ADamagedRecordIsMeasuredAnew) {
  std::filesystem::create_directories(folder);
  for (const char* text : {"", "{", "[]", "{\"schema\":\"hearth.peaks/1\"}"}) {
    write_file_atomically((folder / "peaks.json").string(), text);
    EXPECT_FALSE(load_peaks("here")) << text;
  }
}

}  // namespace
}  // namespace hearth::hardware
