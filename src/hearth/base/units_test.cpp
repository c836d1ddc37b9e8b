#include "hearth/base/units.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Units, ReadWell) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes((1ul << 30) - 1), "1.0 GiB");
  EXPECT_EQ(format_bytes(3ul << 29), "1.5 GiB");
  EXPECT_EQ(format_seconds(0.0042), "4 ms");
  EXPECT_EQ(format_seconds(12.34), "12.3 s");
  EXPECT_EQ(format_seconds(125), "2m05s");
  EXPECT_EQ(format_seconds(7500), "2h05m");
  EXPECT_EQ(format_count(950), "950");
  EXPECT_EQ(format_count(1234567), "1.23M");
}

}  // namespace
}  // namespace hearth
