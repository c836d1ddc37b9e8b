#include "hearth/base/json.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

std::string error_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "file.json", limits);
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(Json, KeepsOrderAndUnicode) {
  const Json j = parse_json("{\"z\":1,\"a\":\"\\u00e9\\ud83d\\ude00\"}", "x");
  EXPECT_EQ(to_json_line(j), "{\"z\":1,\"a\":\"é😀\"}");
}

// The same as the library's own builder makes, keys in order, the last of
// several values for one.
TEST(Json, ReadsAsTheLibraryDoes) {
  std::string many = "{";
  for (int i = 0; i < 40; ++i) {
    many += "\"k" + std::to_string(i % 30) + "\":" + std::to_string(i) + ",";
  }
  many += "\"z\":[{},[],{\"a\":{\"a\":1,\"a\":[2]}}]}";
  for (const std::string& text :
       {many, std::string("[]"), std::string("{}"), std::string("-1"),
        std::string("[18446744073709551615,-2,1.5,true,null,\"\\u0000x\"]"),
        std::string("{\"a\":1,\"b\":2,\"a\":3}")}) {
    EXPECT_EQ(to_json_line(parse_json(text, "x")), Json::parse(text).dump());
  }
}

// A table of keys: with the square of them it took half an hour.
TEST(Json, ReadsObjectsOfManyKeys) {
  std::string text = "{";
  for (int i = 0; i < 500'000; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  }
  const Json read = parse_json(text + "}", "x");
  ASSERT_EQ(read.size(), 500'000U);
  EXPECT_EQ(read.items().begin().key(), "0");
}

TEST(Json, ErrorsSayWhere) {
  const std::string e = error_of("{\n  \"a\": tru\n}");
  EXPECT_EQ(e.rfind("file.json:2:", 0), 0u) << e;
  EXPECT_NE(e.find("not JSON"), std::string::npos) << e;
}

TEST(Json, ALineOfAFileIsNamedByItsNumber) {
  const auto where = [](std::string_view text) -> std::string {
    try {
      parse_json(text, "a.jsonl", {.max_depth = 2}, 7);
    } catch (const FormatError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_TRUE(where("{\"a\": tru}").starts_with("a.jsonl:7:10: not JSON"));
  EXPECT_TRUE(where("[[[]]]").starts_with("a.jsonl:7: JSON must nest"));
}

TEST(Json, BrokenDocumentsAreRefused) {
  for (const char* text :
       {"", "{", "[1,]", "{\"a\"}", "nul", "\"\\x\"", "1 2", "{'a':1}",
        "\"\xff\"", "[1e999999]"}) {
    EXPECT_NE(error_of(text), "") << text;
  }
}

TEST(Json, DepthAndSizeAreBounded) {
  const std::string deep(100, '['), balanced = deep + std::string(100, ']');
  EXPECT_NE(error_of(balanced).find("at most 64 deep"), std::string::npos);
  EXPECT_EQ(error_of(balanced, {.max_bytes = 1000, .max_depth = 100}), "");
  EXPECT_NE(error_of("[1,2,3]", {.max_bytes = 3, .max_depth = 9}), "");
  // Brackets inside strings do not nest.
  EXPECT_EQ(error_of("\"" + deep + "\\\"" + deep + "\""), "");
}

TEST(Json, InvalidBytesAreReplacedOnOutput) {
  EXPECT_EQ(to_json_line(Json("a\xff")), "\"a\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace hearth
