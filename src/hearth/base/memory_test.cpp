#include "hearth/base/memory.h"

#include <cstdint>

#include <gtest/gtest.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/error.h"

namespace hearth {
namespace {

class Memory : public ::testing::Test {
 protected:
  void TearDown() override {
    set_memory_budget(0);
    set_external_memory(nullptr);
    fail_memory_charge(0);
  }
  MemoryZone zone = MemoryZone::named("test");
};

TEST_F(Memory, ZonesCountLiveAndPeak) {
  const std::size_t before = memory_usage().own;
  charge_memory(zone, 1000);
  charge_memory(zone, 500);
  release_memory(zone, 1000);
  EXPECT_EQ(zone.live(), 500u);
  EXPECT_EQ(zone.peak(), 1500u);
  EXPECT_EQ(memory_usage().own, before + 500);
  release_memory(zone, 500);
  reset_memory_peak();
  EXPECT_EQ(zone.peak(), 0u);
}

TEST_F(Memory, TheBudgetRefusesAndChangesNothing) {
  set_memory_budget(memory_usage().total + 1000);
  charge_memory(zone, 900);
  EXPECT_THROW(charge_memory(zone, 101), OutOfMemory);
  EXPECT_EQ(zone.live(), 900u);
  charge_memory(zone, 100);
  release_memory(zone, 1000);
}

TEST_F(Memory, ExternalBytesCountAgainstTheBudget) {
  std::size_t external = 0;
  set_external_memory([&] { return external; });
  set_memory_budget(memory_usage().own + 1000);
  external = 950;
  EXPECT_THROW(require_memory(51), OutOfMemory);
  EXPECT_NO_THROW(require_memory(50));
  EXPECT_EQ(memory_usage().external, 950u);
  external = 5000;  // already past it: even one byte is too much
  EXPECT_THROW(require_memory(1), OutOfMemory);
}

TEST_F(Memory, TheNthChargeCanBeMadeToFail) {
  fail_memory_charge(2);
  charge_memory(zone, 1);
  EXPECT_THROW(charge_memory(zone, 1), OutOfMemory);
  charge_memory(zone, 1);
  release_memory(zone, 2);
}

TEST_F(Memory, BuffersAreAlignedZeroAndCharged) {
  for (const std::size_t bytes : {1ul, 63ul, 4096ul, 9ul << 20}) {
    const AlignedBuffer buffer(zone, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_GE(zone.live(), bytes);
    for (const std::byte b : buffer.as<std::byte>()) {
      ASSERT_EQ(b, std::byte{0});
    }
  }
  EXPECT_EQ(zone.live(), 0u);
}

TEST_F(Memory, AMovedBufferIsFreedOnce) {
  AlignedBuffer a(zone, 1000), b;
  b = std::move(a);
  EXPECT_EQ(a.data(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b.size(), 1000u);
  b = AlignedBuffer();
  EXPECT_EQ(zone.live(), 0u);
}

TEST_F(Memory, ABufferPastTheBudgetIsRefused) {
  set_memory_budget(memory_usage().total + (1 << 20));
  EXPECT_THROW(AlignedBuffer(zone, 2 << 20), OutOfMemory);
  EXPECT_EQ(zone.live(), 0u);
}

}  // namespace
}  // namespace hearth
