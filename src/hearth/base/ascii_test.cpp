#include "hearth/base/ascii.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Ascii, LowersLettersAlone) {
  EXPECT_EQ(ascii_lower("AZ@[`{é09"), "az@[`{é09");
}

TEST(Ascii, TrimsBothEnds) {
  EXPECT_EQ(trimmed("\t a b \t"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \t"), "");
  EXPECT_EQ(trimmed("\r\na ", "\r\n"), "a ");
}

TEST(Ascii, HexDigitsOfEitherCase) {
  EXPECT_EQ(hex_digit('0'), 0);
  EXPECT_EQ(hex_digit('9'), 9);
  EXPECT_EQ(hex_digit('a'), 10);
  EXPECT_EQ(hex_digit('F'), 15);
  for (const char c : {'/', ':', '@', 'G', '`', 'g', '\0'}) {
    EXPECT_EQ(hex_digit(static_cast<char32_t>(c)), -1) << c;
  }
}

}  // namespace
}  // namespace hearth
