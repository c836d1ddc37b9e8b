#include "hearth/text/json_cursor.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth::text {
namespace {

TEST(JsonCursor, ReadsStringsNumbersAndSkips) {
  const std::string text =
      R"( {"a": "\u00e9\ud83d\ude00\n", "b": [1, -2.5e1, true, null], "c": {"d": []}} )";
  JsonCursor cursor(text, "x.json");
  std::string key;
  cursor.begin_object();
  ASSERT_TRUE(cursor.next_key(key));
  EXPECT_EQ(cursor.string(), "\u00E9\U0001F600\n");
  ASSERT_TRUE(cursor.next_key(key));
  EXPECT_EQ(key, "b");
  cursor.begin_array();
  ASSERT_TRUE(cursor.next_item());
  EXPECT_EQ(cursor.integer(), 1);
  ASSERT_TRUE(cursor.next_item());
  EXPECT_EQ(cursor.number(), -25.0);
  ASSERT_TRUE(cursor.next_item());
  EXPECT_TRUE(cursor.boolean());
  ASSERT_TRUE(cursor.next_item());
  EXPECT_EQ(cursor.skip(), "null");
  EXPECT_FALSE(cursor.next_item());
  ASSERT_TRUE(cursor.next_key(key));
  EXPECT_EQ(cursor.skip(), R"({"d": []})");
  EXPECT_FALSE(cursor.next_key(key));
  cursor.end();
}

std::string refusal(JsonCursor cursor) {
  try {
    cursor.skip();
    cursor.end();
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(JsonCursor, ErrorsSayWhere) {
  EXPECT_EQ(
      refusal(JsonCursor("{\"a\":\n [1 2]}", "x.json")),
      "x.json:2: column 5: ',' or ']' must stand here"
  );
  EXPECT_EQ(refusal(JsonCursor("[1, ]")), "column 5: a number must stand here");
}

// A line of a data set was repaired before; a file's bytes are as they are.
TEST(JsonCursor, AFileMustBeTextAndALineMayHaveHalvesOfPairs) {
  const std::string half = R"(["\ud800"])", bytes = "[\"\xff\"]";
  EXPECT_NE(
      refusal(JsonCursor(half, "x")).find("surrogate"), std::string::npos
  );
  EXPECT_NE(refusal(JsonCursor(bytes, "x")).find("UTF-8"), std::string::npos);
  JsonCursor line(half);
  EXPECT_EQ(line.value()[0], "\uFFFD");
  EXPECT_EQ(line.replaced(), 1U);
}

}  // namespace
}  // namespace hearth::text
