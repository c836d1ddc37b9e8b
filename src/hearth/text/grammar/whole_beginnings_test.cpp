#include "hearth/text/grammar/whole_beginnings.h"

#include <gtest/gtest.h>

#include "hearth/text/stop_text.h"

namespace hearth::text::grammar {
namespace {

TEST(WholeBeginnings, AreWhatTheWholeTextsOfThemAreInAnyOrder) {
  const auto regex = grammar_of_regex("(ab?)*|a+c");
  const std::string_view text = "aababcab";
  for (const bool backwards : {false, true}) {
    WholeBeginnings beginnings(*regex);
    for (std::size_t i = 0; i <= text.size(); ++i) {
      const auto one = text.substr(0, backwards ? text.size() - i : i);
      EXPECT_EQ(beginnings.is_whole(one), is_whole_text(*regex, one)) << one;
    }
    EXPECT_EQ(beginnings.steps(), text.size());
  }
  WholeBeginnings none(*grammar_of_regex("ab"));
  EXPECT_FALSE(none.is_whole("b"));
  EXPECT_FALSE(none.is_whole("bab"));
}

// More than the stacks remember at once.
TEST(WholeBeginnings, GoOnWhereStacksAreRenewed) {
  const auto grammar =
      grammar_of_gbnf("root ::= \"b\" a a a a \"x\"\na ::= \" \"{100000}");
  WholeBeginnings beginnings(*grammar);
  std::string text = "b";
  while (text.size() <= 400'000) {
    text += std::string(64, ' ');
    ASSERT_FALSE(beginnings.is_whole(text));
  }
  EXPECT_FALSE(beginnings.is_whole(text));
  text += 'x';
  EXPECT_TRUE(beginnings.is_whole(text));
  EXPECT_EQ(beginnings.steps(), text.size());
}

// Blanks that the grammar still needs, each of them a stop string, behind a
// stop string's beginning that holds all of them back.
TEST(WholeBeginnings, ReadEachByteOnceHoweverManyStopStringsLieInIt) {
  constexpr std::size_t kBlanks = 64 * 500;
  const auto grammar = grammar_of_gbnf("root ::= \"b\" \" \"{32000} \"x\"?");
  WholeBeginnings beginnings(*grammar);
  StopText stop(
      {"b" + std::string(kMaxStopBytes - 1, ' '), " ", "  ", "x"},
      [&](std::string_view before) { return beginnings.is_whole(before); }
  );
  std::string shown = stop.push("b");
  for (std::size_t i = 0; i < kBlanks; i += 64) {
    shown += stop.push(std::string(64, ' '));
    ASSERT_FALSE(stop.found());
  }
  shown += stop.push("x");
  EXPECT_TRUE(stop.found());
  EXPECT_EQ(shown, "b" + std::string(kBlanks, ' '));
  EXPECT_EQ(beginnings.steps(), shown.size());
}

}  // namespace
}  // namespace hearth::text::grammar
