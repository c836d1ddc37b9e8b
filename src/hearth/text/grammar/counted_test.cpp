// Counted repetitions that are kept as a number beside one copy of their part:
// their bounds hold, and masks agree with what is then taken.
#include <random>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/vocabulary_test.h"

namespace hearth::text::grammar {
namespace {

bool whole(const std::string& pattern, const std::string& text) {
  return is_whole_text(*grammar_of_regex(pattern), text);
}

std::string times(const std::string& part, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += part;
  return all;
}

TEST(GrammarCounted, BoundsHold) {
  for (const int n : {0, 1, 99, 100, 101, 299, 300, 301}) {
    const bool in = n >= 100 && n <= 300;
    EXPECT_EQ(whole("a{100,300}", times("a", n)), in) << n;
    EXPECT_EQ(whole("(ab|c){100,300}!", times("c", n) + "!"), in) << n;
    EXPECT_EQ(whole("(ab|c){100,300}", times("ab", n)), in) << n;
    EXPECT_EQ(whole("a{100,}", times("a", n)), n >= 100) << n;
    EXPECT_EQ(whole("a{300}", times("a", n)), n == 300) << n;
    EXPECT_EQ(whole("[a-é€]{100,300}", times("€", n)), in) << n;
    EXPECT_EQ(whole("(a{2,90}b){100,300}", times("aab", n)), in) << n;
    // One after the other, and a part that may be empty.
    EXPECT_EQ(whole("a{50,150}a{50,150}", times("a", n)), in) << n;
    EXPECT_EQ(whole("(a?b?){200}", times("ab", n)), n <= 200) << n;
  }
  EXPECT_TRUE(whole("(a{70}|b){70}", times("b", 69) + times("a", 70)));
  EXPECT_FALSE(whole("(a{70}|b){70}", times("b", 69) + times("a", 69)));
  EXPECT_TRUE(whole("(x?){100000}", times("x", 1000)));
  EXPECT_TRUE(whole("(x*){2,100000}", times("x", 1000)));
  EXPECT_FALSE(whole("x{0}", "x"));
}

TEST(GrammarCounted, AgreeWithTheStandardLibrary) {
  const char* const patterns[] = {
      "(ab|a|b){65,67}", "(a|bc?){70}a*", "(a(b|c){2,80}){1,70}", "a{0,66}b"
  };
  std::mt19937 random(3);
  for (const char* pattern : patterns) {
    const std::regex standard(pattern);
    const auto grammar = grammar_of_regex(pattern);
    int taken = 0;
    for (int round = 0; round < 400; ++round) {
      std::string text;
      const auto letters = 60 + random() % 30;
      for (std::size_t i = 0; i < letters; ++i) {
        text += random() % 3 != 0 ? 'a' : static_cast<char>('b' + random() % 2);
      }
      const bool is = std::regex_match(text, standard);
      taken += is ? 1 : 0;
      EXPECT_EQ(is_whole_text(*grammar, text), is) << pattern << "\n" << text;
    }
    (void)taken;
  }
}

// A mask may not depend on which time it is, except where a bound is near.
TEST(GrammarCounted, MasksAreWhatIsThenTaken) {
  const TestVocabulary vocabulary;
  const struct {
    const char* pattern;
    const char* part;
  } cases[] = {
      {"\"[^\"]{60,140}\",?", "a"},  {"(ab|a){90,}x", "ab"},
      {"(aa|ba|the){30,70}", "the"}, {"é{80,81}b{70}", "é"},
      {"((a|b){70}0){2}", "ba"},
  };
  for (const auto& [pattern, part] : cases) {
    GrammarState state(grammar_of_regex(pattern), vocabulary.made);
    if (pattern[0] == '"') state.accept_bytes("\"");
    for (int i = 0; i < 150; ++i) {
      std::vector<bool> allowed(vocabulary.bytes.size());
      for (const std::int32_t id : vocabulary.allowed(state)) {
        allowed[static_cast<std::size_t>(id)] = true;
      }
      for (std::size_t id = 0; id < vocabulary.bytes.size(); ++id) {
        const std::string& bytes = vocabulary.bytes[id];
        if (bytes.empty() || id == static_cast<std::size_t>(vocabulary.stop)) {
          continue;
        }
        GrammarState copy(state);
        bool taken = true;
        try {
          copy.accept_bytes(bytes);
        } catch (const Error&) {
          taken = false;
        }
        ASSERT_EQ(allowed[id], taken) << pattern << " " << i << " " << bytes;
      }
      try {
        state.accept_bytes(part);
      } catch (const Error&) {
        break;
      }
    }
  }
}

TEST(GrammarCounted, WhatTokensCannotWriteIsRefused) {
  const auto vocabulary = grammar_vocabulary({"ab", "x", ""}, {2});
  const auto state = [&](const char* pattern) {
    return GrammarState(grammar_of_regex(pattern), vocabulary);
  };
  EXPECT_THROW(state("[ab]{80}y"), UsageError);
  EXPECT_THROW(state("[^abx]{81}x"), UsageError);
  GrammarState even = state("[ab]{80,82}x");
  for (int i = 0; i < 40; ++i) even.accept(0);
  std::vector<float> logits(3);
  even.mask(logits);
  EXPECT_EQ(logits[0], 0);
  EXPECT_EQ(logits[1], 0);
  even.accept(0);
  even.mask(logits);
  EXPECT_TRUE(std::isinf(logits[0]));
}

// Bytes that few texts have are missing in most vocabularies. That was found
// out by going through every state with every part of a token.
TEST(GrammarCounted, AVocabularyThatLacksRareBytesCostsLittle) {
  std::vector<std::string> bytes;
  for (int i = 0; i < 0xF1; ++i) bytes.emplace_back(1, static_cast<char>(i));
  bytes.emplace_back();
  const auto vocabulary = grammar_vocabulary(bytes, {0xF1});
  for (const char* pattern :
       {".{5,100000}", "(é|[a-f]{2,90}){100,}", "[^a]*(b.){70}"}) {
    Effort effort(20'000);
    GrammarState state(grammar_of_regex(pattern), vocabulary, &effort);
    std::vector<float> logits(bytes.size());
    state.mask(logits);
    EXPECT_EQ(logits['b'], 0) << pattern;
  }
  // No text of the fourth plane can be written.
  EXPECT_THROW(
      GrammarState(grammar_of_regex("a[\\u{40000}-\\u{50000}]"), vocabulary),
      UsageError
  );
}

TEST(GrammarCounted, TooManyAreRefusedOrMade) {
  EXPECT_TRUE(whole("(a{1000}){0,100000}", times("a", 3000)));
  EXPECT_THROW(grammar_of_regex("(a?b?c*){100000}"), UsageError);
  EXPECT_THROW(
      grammar_of_gbnf("root ::= (\"" + times("a", 20000) + "\"){100000}"),
      UsageError
  );
  EXPECT_THROW(
      grammar_of_gbnf("root ::= \"" + times("a", 300'000) + "\""), UsageError
  );
  // Loops in loops are rules, and their counts do not multiply.
  EXPECT_TRUE(whole(
      "(((a{900}){900}){900}){0,900}b{90000}c{1,90000}", times("b", 90000) + "c"
  ));
  // A class that is written once however often it stands there.
  EXPECT_TRUE(whole("(" + times("\\p{L}", 2500) + "){0,100000}", ""));
  EXPECT_TRUE(
      whole("\\p{L}{100}[^\\p{L}]{100}", times("ß", 100) + times("1", 100))
  );
  EXPECT_FALSE(whole("\\p{L}{100}", times("ß", 99) + "1"));
}

// Alternatives that begin alike are told apart where they differ.
TEST(GrammarCounted, AlternativesShareTheirBeginnings) {
  const auto grammar = grammar_of_gbnf(
      "root ::= (\"ab\" | \"abc\" \"x\"? | \"abd\" [0-9] | \"a\" | \"abc\" | "
      "\"é\" | \"è\" | \"ab\" r) \"!\"\nr ::= \"q\" | \"bc\" r"
  );
  for (const char* good :
       {"ab!", "abc!", "abcx!", "abd7!", "a!", "é!", "è!", "abq!", "abbcq!"}) {
    EXPECT_TRUE(is_whole_text(*grammar, good)) << good;
  }
  for (const char* bad : {"abd!", "abx!", "!", "aé!", "\xC3!", "abcc!"}) {
    EXPECT_FALSE(is_whole_text(*grammar, bad)) << bad;
  }
}

}  // namespace
}  // namespace hearth::text::grammar
