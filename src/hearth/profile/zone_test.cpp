#include "hearth/profile/zone.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "hearth/base/json.h"
#include "hearth/base/temp_folder_test.h"

namespace hearth::profile {
namespace {

void spend(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

const ZoneTotal* find(const std::vector<ZoneTotal>& all, const char* name) {
  for (const ZoneTotal& t : all) {
    if (t.name == name) return &t;
  }
  return nullptr;
}

TEST(Zone, RecordsNothingWhenOff) {
  start_zones();
  stop_zones();
  {
    const Zone z("off");
  }
  EXPECT_EQ(find(zone_totals(), "off"), nullptr);
}

TEST(Zone, SelfTimeLeavesInnerZonesOut) {
  start_zones();
  {
    const Zone outer("outer");
    spend(2);
    const Zone inner("inner");
    spend(20);
  }
  std::thread([] { const Zone z("elsewhere"); }).join();
  stop_zones();
  const auto all = zone_totals();
  const auto *outer = find(all, "outer"), *inner = find(all, "inner");
  ASSERT_TRUE(outer && inner && find(all, "elsewhere"));
  EXPECT_EQ(inner->count, 1);
  EXPECT_GE(inner->seconds, 0.020);
  EXPECT_GE(outer->self_seconds, 0.002);
  EXPECT_NEAR(outer->seconds - outer->self_seconds, inner->seconds, 1e-9);
}

TEST(Zone, TraceIsJsonWithOneEventAZone) {
  start_zones();
  for (int i = 0; i < 5; ++i) const Zone z("a \"quoted\" name");
  stop_zones();
  const TempFolder folder;
  const std::string path = folder / "trace.json";
  write_trace(path);
  const Json trace = read_json_file(path);
  int complete = 0;
  for (const Json& e : trace["traceEvents"]) {
    if (e["ph"] != "X") continue;
    ++complete;
    EXPECT_EQ(e["name"], "a \"quoted\" name");
    EXPECT_GE(e["dur"].get<double>(), 0);
  }
  EXPECT_EQ(complete, 5);
  EXPECT_EQ(trace["otherData"]["dropped_events"], 0);
}

}  // namespace
}  // namespace hearth::profile
