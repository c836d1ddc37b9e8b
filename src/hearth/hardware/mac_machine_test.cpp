#include "hearth/hardware/mac_machine.h"

#include <gtest/gtest.h>

#include "hearth/hardware/capture_test.h"

namespace hearth::hardware {
namespace {

MacFacts facts(const std::string& capture) {
  MacFacts f;
  f.sysctl = read_sysctl(capture_text("sysctl-" + capture));
  return f;
}

TEST(MacMachine, ClustersAreWhatTheSystemCallsThem) {
  const Machine m1 = describe_mac(facts("m1"));
  EXPECT_EQ(m1.cpu.model, "Apple M1");
  EXPECT_EQ(m1.cpu.architecture, "arm64");
  ASSERT_EQ(m1.cpu.clusters.size(), 2u);
  EXPECT_EQ(m1.cpu.clusters[0].kind, "performance");
  EXPECT_EQ(m1.cpu.clusters[0].cores, 4);
  EXPECT_EQ(m1.cpu.usable_threads, 4);
  EXPECT_EQ(m1.os_version, "macOS 14.6 (23G80)");

  const Machine m6 = describe_mac(facts("m6"));
  ASSERT_EQ(m6.cpu.clusters.size(), 3u);
  EXPECT_EQ(m6.cpu.clusters[0].kind, "super");
  EXPECT_EQ(m6.cpu.clusters[2].cores, 6);
  EXPECT_EQ(m6.cpu.physical_cores, 12);
}

TEST(MacMachine, SafeMemoryIsWhatMetalRecommends) {
  MacFacts f = facts("m4-pro");
  f.recommended_working_set = 40'200'900'000;
  const Machine m = describe_mac(f);
  EXPECT_EQ(safe_memory(m).bytes, 40'200'900'000u);
  EXPECT_NE(
      safe_memory(m).derivation.find("recommendedMaxWorkingSetSize"),
      std::string::npos
  );
}

TEST(MacMachine, WarnsOfBatteryLowPowerAndHeat) {
  MacFacts f = facts("m1-max");
  EXPECT_TRUE(warnings(describe_mac(f)).empty());
  f.power_source = "battery";
  f.low_power = true;
  f.thermal_state = "serious";
  EXPECT_EQ(warnings(describe_mac(f)).size(), 3u);
}

}  // namespace
}  // namespace hearth::hardware
