#include "hearth/infer/cpu/read_ahead.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/infer/cpu/spin_barrier.h"

namespace hearth::infer {
namespace {

TEST(ReadAhead, AsksForEveryLineOnce) {
  const std::vector<std::byte> bytes(1000);
  ReadAhead ahead;
  EXPECT_FALSE(ahead.more(4));
  ahead.add(std::span(bytes).first(640));
  ahead.add(std::span(bytes).subspan(640));
  EXPECT_EQ(ahead.left(), 1000u);
  EXPECT_TRUE(ahead.more(4));
  EXPECT_EQ(ahead.left(), 1000u - 4 * 64);
  EXPECT_TRUE(ahead.more(8));  // across the border of the two
  EXPECT_EQ(ahead.left(), 360u - 2 * 64);
  EXPECT_FALSE(ahead.more(100));
  EXPECT_EQ(ahead.left(), 0u);
  EXPECT_FALSE(ahead.more(100));
}

TEST(ReadAhead, TakesNoMoreThanTheCacheHolds) {
  const std::vector<std::byte> bytes(ReadAhead::kMost + 4096);
  ReadAhead ahead;
  ahead.add(std::span(bytes).first(4096));
  ahead.add(bytes);
  ahead.add(bytes);
  EXPECT_EQ(ahead.left(), ReadAhead::kMost);
  ahead.clear();
  EXPECT_EQ(ahead.left(), 0u);
  ahead.add(bytes);
  EXPECT_EQ(ahead.left(), ReadAhead::kMost);
}

TEST(SpinBarrier, CallsIdleUntilAllAreThere) {
  SpinBarrier barrier(2);
  std::atomic<bool> enough{false};
  int calls = 0;
  std::thread other([&] {
    while (!enough) std::this_thread::yield();
    barrier.wait();
  });
  barrier.wait([&] {
    if (++calls == 3) enough = true;
    return calls < 2;
  });
  EXPECT_GE(calls, 3);
  other.join();
}

}  // namespace
}  // namespace hearth::infer
