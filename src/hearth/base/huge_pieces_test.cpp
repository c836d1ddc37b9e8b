#include "hearth/base/huge_pieces.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/aligned_buffer.h"

namespace hearth {
namespace {

constexpr std::size_t kBytes = 300 * 1000;  // no whole pages

bool all_are(const std::byte* p, std::size_t n, int value) {
  return std::all_of(p, p + n, [&](std::byte b) {
    return b == static_cast<std::byte>(value);
  });
}

TEST(HugePieces, LieSideBySideOnOneStretch) {
  const std::size_t before = huge_stretches();
  std::byte* a = take_huge_piece(kBytes);
  std::byte* b = take_huge_piece(kBytes);
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 64, 0u);
  EXPECT_EQ(b - a, static_cast<std::ptrdiff_t>((kBytes + 63) / 64 * 64));
  EXPECT_EQ(huge_stretches(), before + 1);
  free_huge_piece(a, kBytes);
  free_huge_piece(b, kBytes);
  EXPECT_EQ(huge_stretches(), before);
}

TEST(HugePieces, AFreedOneLeavesItsNeighboursAlone) {
  std::vector<std::byte*> pieces;
  for (int i = 0; i < 200; ++i) {  // more than one stretch
    pieces.push_back(take_huge_piece(kBytes));
    ASSERT_TRUE(all_are(pieces.back(), kBytes, 0));
    std::memset(pieces.back(), i + 1, kBytes);
  }
  for (std::size_t i = 0; i < pieces.size(); i += 2) {
    free_huge_piece(pieces[i], kBytes);
  }
  for (std::size_t i = 1; i < pieces.size(); i += 2) {
    EXPECT_TRUE(all_are(pieces[i], kBytes, static_cast<int>(i) + 1)) << i;
    free_huge_piece(pieces[i], kBytes);
  }
}

TEST(HugePieces, OneLargerThanAStretch) {
  constexpr std::size_t kLarge = std::size_t{40} << 20;
  std::byte* p = take_huge_piece(kLarge);
  ASSERT_NE(p, nullptr);
  p[kLarge - 1] = std::byte{1};
  free_huge_piece(p, kLarge);
}

TEST(HugePieces, AreTakenByManyThreads) {
  const std::size_t before = huge_stretches();
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 50; ++i) {
        std::byte* p = take_huge_piece(kBytes);
        std::memset(p, t, kBytes);
        EXPECT_TRUE(all_are(p, kBytes, t));
        free_huge_piece(p, kBytes);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(huge_stretches(), before);
}

TEST(HugePieces, KeptBuffersAreZeroAndCharged) {
  const MemoryZone zone = MemoryZone::named("test pieces");
  const std::size_t before = huge_stretches();
  using Kept = AlignedBuffer::Kept;
  AlignedBuffer a(zone, kBytes, Kept::long_time);
  EXPECT_EQ(huge_stretches(), before + 1);
  EXPECT_EQ(zone.live(), AlignedBuffer::taken(kBytes));
  EXPECT_TRUE(all_are(a.data(), a.size(), 0));
  // Too small, and large enough for pages of its own.
  const AlignedBuffer small(zone, 100, Kept::long_time);
  const AlignedBuffer own(zone, AlignedBuffer::kHugeFrom, Kept::long_time);
  AlignedBuffer moved = std::move(a);
  a = AlignedBuffer(zone, kBytes);  // an ordinary one
  moved = AlignedBuffer();
  EXPECT_EQ(huge_stretches(), before);
}

}  // namespace
}  // namespace hearth
