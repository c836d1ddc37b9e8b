// Scanners against the general matcher: same matches on every text.
#include <random>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/known_patterns.h"
#include "hearth/text/tokenizer/matcher.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

using Spans = std::vector<std::pair<std::size_t, std::size_t>>;

Spans spans(const Matcher& matcher, std::string_view text) {
  Spans out;
  matcher.find_all(text, [&](std::size_t begin, std::size_t end) {
    out.emplace_back(begin, end);
  });
  return out;
}

// Letters of every case, digits, marks, spaces, punctuation, odd ones.
std::string random_text(std::mt19937& rng) {
  static const std::vector<std::uint32_t> alphabet = {
      'a',    'b',    'Z',   's',      't',   'l',    'd',    'r',
      'e',    'v',    'm',   'S',      'L',   '\'',   '\'',   ' ',
      ' ',    ' ',    '\n',  '\r',     '\t',  '1',    '2',    '9',
      '.',    '/',    '-',   '_',      '<',   0x85,   0xA0,   0x3000,
      0x2028, 0x17F,  0x1C5, 0x2B0,    0x301, 0x903,  0x4E2D, 0x9FA6,
      0x3042, 0x30FF, 0x661, 0x2167,   0xB2,  0x20AC, 0x200D, 0x1F600,
      0xFFFD, 0,      0x7F,  0x10FFFF, 0xE9,  0x391,  0x3B1
  };
  std::string out;
  const std::size_t length = rng() % 24 + 1;
  while (out.size() < length) {
    const bool any = rng() % 16 == 0;
    std::uint32_t c = alphabet[rng() % alphabet.size()];
    if (any) c = rng() % 0x30000;
    if (c >= 0xD800 && c < 0xE000) c = 'x';
    append_utf8(out, c);
  }
  return out;
}

TEST(Scanner, AgreesWithTheGeneralMatcher) {
  const std::string_view patterns[] = {
      kGpt2Pattern, kLlama3Pattern,   kQwen2Pattern,        kGpt4oPattern,
      kNemoPattern, kDeepSeekPattern, kThreeNumbersPattern, kHanAndKanaPattern
  };
  for (const std::string_view pattern : patterns) {
    const auto scanner = make_scanner(pattern);
    ASSERT_NE(scanner, nullptr) << pattern;
    const auto general = make_general_matcher(std::string(pattern));
    std::mt19937 rng(3);
    for (int i = 0; i < 6000; ++i) {
      const std::string text = random_text(rng);
      ASSERT_EQ(spans(*scanner, text), spans(*general, text))
          << pattern << " on " << testing::PrintToString(text);
    }
  }
}

TEST(Scanner, IsChosenByTheWholePattern) {
  EXPECT_EQ(make_scanner(std::string(kGpt2Pattern) + "|x"), nullptr);
  EXPECT_EQ(make_scanner(""), nullptr);
}

TEST(Regex, LongRunsAreNotQuadratic) {
  const std::string spaces(1 << 20, ' ');
  for (const std::string_view pattern : {kGpt2Pattern, kLlama3Pattern}) {
    EXPECT_EQ(spans(*make_scanner(pattern), spaces).size(), 1u);
    EXPECT_EQ(spans(*make_scanner(pattern), spaces + "x").size(), 2u);
  }
}

TEST(Regex, RefusesWhatItCannotRead) {
  for (const char* pattern :
       {"(", "[", "[a", "a**b(", "\\p{Klingon}", "\\p", "[a&&b]", "\\k<x>",
        "[[:alpha:]]", "\\", "[]", "(?<n"}) {
    EXPECT_THROW(make_general_matcher(pattern), FormatError) << pattern;
  }
}

TEST(Regex, RunawayPatternsStop) {
  const auto matcher = make_general_matcher("(?:a|aa)+[bd]");
  EXPECT_THROW(spans(*matcher, std::string(200, 'a') + "c"), Error);
}

TEST(Literal, FindsWithoutOverlap) {
  EXPECT_EQ(
      spans(*make_literal_matcher("aa"), "aaaaa"), (Spans{{0, 2}, {2, 4}})
  );
  EXPECT_TRUE(spans(*make_literal_matcher(""), "aaa").empty());
}

}  // namespace
}  // namespace hearth::text
