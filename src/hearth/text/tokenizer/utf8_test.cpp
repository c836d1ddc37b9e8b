#include "hearth/text/tokenizer/utf8.h"

#include <gtest/gtest.h>

#include "hearth/text/tokenizer/unicode.h"

namespace hearth::text {
namespace {

// What Python 3 says for bytes.decode("utf-8", errors="replace").
TEST(Utf8, RepairsAsPythonDoes) {
  const struct {
    const char *bytes, *text;
  } cases[] = {
      {"plain", "plain"},
      {"caf\xC3\xA9", "caf\u00E9"},
      {"\xC3", "\uFFFD"},
      {"\xC3(", "\uFFFD("},
      {"\xE4\xBD", "\uFFFD"},
      {"\xE4\xBD\xE4\xBD\xA0", "\uFFFD\u4F60"},
      {"\xF0\x9F\x98"
       "a",
       "\uFFFD"
       "a"},
      {"\xC0\x80", "\uFFFD\uFFFD"},
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\xE0\x80\x80", "\uFFFD\uFFFD\uFFFD"},
      {"\xF5\xFF\xFE", "\uFFFD\uFFFD\uFFFD"},
      {"a\x80"
       "b",
       "a\uFFFD"
       "b"},
      {"\xF0\x9F\x98\x80", "\U0001F600"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(repair_utf8(c.bytes), c.text);
    EXPECT_TRUE(is_valid_utf8(repair_utf8(c.bytes)));
  }
}

TEST(Utf8, KnowsWhatMoreBytesCouldFinish) {
  EXPECT_EQ(unfinished_utf8_suffix("abc"), 0u);
  EXPECT_EQ(unfinished_utf8_suffix("\xC3"), 1u);
  EXPECT_EQ(unfinished_utf8_suffix("a\xE4\xBD"), 2u);
  EXPECT_EQ(unfinished_utf8_suffix("\xF0\x9F\x98"), 3u);
  EXPECT_EQ(unfinished_utf8_suffix("\xF0\x9F\x98\x80"), 0u);
  EXPECT_EQ(unfinished_utf8_suffix("\xED\xA0"), 0u);  // can never be valid
  EXPECT_EQ(unfinished_utf8_suffix("\x80\x80"), 0u);
}

TEST(Utf8, RoundTripsEveryCodePoint) {
  for (std::uint32_t c = 0; c < unicode::kCodePoints; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string text;
    append_utf8(text, c);
    ASSERT_TRUE(is_valid_utf8(text)) << c;
    ASSERT_EQ(decode_utf8(text.data()).value, c);
    ASSERT_EQ(decode_utf8(text.data()).size, text.size());
  }
}

// Examples of Unicode Standard Annex 15.
TEST(Unicode, NormalForms) {
  const auto form = [](const char* text, unicode::Form f) {
    std::string out;
    return unicode::normalize(text, f, out) ? out : std::string(text);
  };
  using unicode::Form;
  EXPECT_EQ(form("\u212B", Form::kNfc), "\u00C5");
  EXPECT_EQ(form("\u212B", Form::kNfd), "A\u030A");
  EXPECT_EQ(form("\u1E9B\u0323", Form::kNfc), "\u1E9B\u0323");
  EXPECT_EQ(form("\u1E9B\u0323", Form::kNfd), "\u017F\u0323\u0307");
  EXPECT_EQ(form("\u1E9B\u0323", Form::kNfkc), "\u1E69");
  EXPECT_EQ(form("\u1E9B\u0323", Form::kNfkd), "s\u0323\u0307");
  EXPECT_EQ(form("\uFB01", Form::kNfc), "\uFB01");
  EXPECT_EQ(form("\uFB01", Form::kNfkc), "fi");
  EXPECT_EQ(form("2\u2075", Form::kNfkd), "25");
  EXPECT_EQ(form("\u1100\u1161\u11A8", Form::kNfc), "\uAC01");
  EXPECT_EQ(form("\uAC01", Form::kNfd), "\u1100\u1161\u11A8");
  EXPECT_EQ(form("x\u0301y e\u0301", Form::kNfc), "x\u0301y \u00E9");
  EXPECT_EQ(form("plain", Form::kNfkd), "plain");
}

TEST(Unicode, Properties) {
  EXPECT_EQ(unicode::category('a'), unicode::kLl);
  EXPECT_EQ(unicode::category(0x4F60), unicode::kLo);
  EXPECT_EQ(unicode::category(0x0301), unicode::kMn);
  EXPECT_EQ(unicode::category(0x10FFFF), unicode::kCn);
  EXPECT_TRUE(unicode::is_space(0x3000));
  EXPECT_FALSE(unicode::is_space(0x200B));
  const auto letters = unicode::ranges_of("L");
  std::size_t count = 0;
  for (const auto& r : letters) count += r.last - r.first + 1;
  EXPECT_EQ(count, 141028u);  // Unicode 16.0
  EXPECT_TRUE(unicode::ranges_of("Nonsense").empty());
}

}  // namespace
}  // namespace hearth::text
