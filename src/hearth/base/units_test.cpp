#include "hearth/base/units.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

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

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_bytes("4096", "x"), 4096u);
  EXPECT_EQ(parse_bytes("6G", "x"), std::size_t{6} << 30);
  EXPECT_EQ(parse_bytes("1.5 GiB", "x"), std::size_t{3} << 29);
  EXPECT_EQ(parse_bytes("512mb", "x"), std::size_t{512} << 20);
  for (const char* bad : {"", "G", "6X", "-1G", "1e99T", "6 GBx", "nan"}) {
    EXPECT_THROW(parse_bytes(bad, "x"), UsageError) << bad;
  }
}

}  // namespace
}  // namespace hearth
