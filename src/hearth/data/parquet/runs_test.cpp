#include "hearth/data/parquet/runs.h"

#include <string>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::data::parquet {
namespace {

std::string bytes(std::initializer_list<int> list) {
  std::string text;
  for (const int b : list) text += static_cast<char>(b);
  return text;
}

std::string values(const std::string& from, unsigned width, int count) {
  RunReader reader(from, width);
  std::string out;
  for (int i = 0; i < count; ++i) out += std::to_string(reader.next()) + " ";
  return out;
}

TEST(ParquetRuns, RunsAndGroupsFollowEachOther) {
  // Three fives; eight values of three bits, 0 to 7; two sixes.
  const std::string mixed =
      bytes({3 << 1, 5, 1 << 1 | 1, 0x88, 0xC6, 0xFA, 2 << 1, 6});
  EXPECT_EQ(values(mixed, 3, 13), "5 5 5 0 1 2 3 4 5 6 7 6 6 ");
  EXPECT_THROW(values(mixed, 3, 14), FormatError);
  // Runs of no values, and a width of no bits.
  EXPECT_EQ(values(bytes({0, 1, 1 << 1, 1}), 1, 1), "1 ");
  EXPECT_EQ(values(bytes({4 << 1}), 0, 4), "0 0 0 0 ");
}

TEST(ParquetRuns, WideValuesTakeWholeBytes) {
  const std::string run = bytes({1 << 1, 0x01, 0x02, 0x03, 0x80});
  EXPECT_EQ(values(run, 32, 1), std::to_string(0x80030201u) + " ");
  std::string packed = bytes({1 << 1 | 1});
  for (int i = 0; i < 8; ++i) packed += bytes({i, 0, 0, 0xFF});
  EXPECT_EQ(values(packed, 32, 1), std::to_string(0xFF000000u) + " ");
}

TEST(ParquetRuns, WhatIsCutShortIsAnError) {
  EXPECT_THROW(values("", 1, 1), FormatError);
  EXPECT_THROW(values(bytes({1 << 1}), 8, 1), FormatError);
  EXPECT_THROW(values(bytes({1 << 1 | 1, 7}), 3, 8), FormatError);
  EXPECT_THROW(values(std::string(9, '\xFF'), 1, 1), FormatError);
}

TEST(ParquetRuns, BitsForLevels) {
  EXPECT_EQ(bits_for(0), 0u);
  EXPECT_EQ(bits_for(1), 1u);
  EXPECT_EQ(bits_for(4), 3u);
}

}  // namespace
}  // namespace hearth::data::parquet
