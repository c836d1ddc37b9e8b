// Masks of tokens against a plain reader of the same grammar.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/front_ends.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/reader_test.h"
#include "hearth/text/grammar/vocabulary_test.h"

namespace hearth::text::grammar {
namespace {

// Small enough for the plain reader, each with something of its own.
const char* const kSources[] = {
    "root ::= \"ab\" | \"abc\" | \"a\" [b-d]* \"x\"",
    "root ::= \"(\" root \")\" root | \"\"",
    "root ::= value\nvalue ::= \"[\" (value (\",\" value)*)? \"]\" | "
    "\"\\\"\" [^\"\\\\\\x00-\\x1F]* \"\\\"\" | [0-9]{1,3}",
    "root ::= [é€😀] [à-ÿ]{2,5} .? ",
    "root ::= (\"a\" | \"b\" | \"aa\")* \"!\"",
    "root ::= list\nlist ::= item | item \",\" list\nitem ::= [a-c] {2,9}",
    "root ::= maybe maybe \"x\"?\nmaybe ::= \"a\"* other?\nother ::= \"b\"",
    // Exponentially many ways to read the same text.
    "root ::= s \"end\"\ns ::= \"a\" s | \"a\" \"a\" s | \"\"",
    "root ::= p0\np0 ::= p1 \"x\" | p1 \"y\"\np1 ::= p2 \"x\" | p2 \"y\"\n"
    "p2 ::= p3 \"x\" | p3 \"y\"\np3 ::= \"(\" p0 \")\" | \"q\"",
    "root ::= ( [a-b] \"-\" [^x]{3} ){5,6}",
};

TEST(GrammarState, MasksAgreeWithThePlainReader) {
  const TestVocabulary vocabulary;
  std::mt19937 random(7);
  for (const char* source : kSources) {
    Effort effort;
    const Rules rules = gbnf_rules(source, effort);
    PlainReader reader(rules);
    const auto grammar = grammar_of_gbnf(source);
    for (int round = 0; round < 3; ++round) {
      GrammarState state(grammar, vocabulary.made);
      std::string text;
      for (int i = 0; i < 12; ++i) {
        const auto allowed = vocabulary.allowed(state);
        for (std::int32_t id = 0; id < vocabulary.special; ++id) {
          ASSERT_EQ(
              std::ranges::binary_search(allowed, id),
              reader.begins(text + vocabulary.text_of(id))
          ) << source
            << "\nafter '" << text << "' token '" << vocabulary.text_of(id)
            << "'";
        }
        EXPECT_FALSE(std::ranges::binary_search(allowed, vocabulary.special));
        ASSERT_EQ(state.may_end(), reader.matches(text)) << source << text;
        ASSERT_EQ(
            std::ranges::binary_search(allowed, vocabulary.stop),
            state.may_end()
        );
        ASSERT_EQ(
            state.must_end(),
            allowed.size() == 1 && allowed[0] == vocabulary.stop
        );
        if (state.must_end()) break;
        std::int32_t id = vocabulary.stop;
        while (id == vocabulary.stop) id = allowed[random() % allowed.size()];
        state.accept(id);
        text += vocabulary.text_of(id);
      }
    }
  }
}

TEST(GrammarState, WhatIsFinishedIsValid) {
  const TestVocabulary vocabulary;
  std::mt19937 random(11);
  int finished = 0;
  for (const char* source : kSources) {
    Effort effort;
    const Rules rules = gbnf_rules(source, effort);
    PlainReader reader(rules);
    const auto grammar = grammar_of_gbnf(source);
    for (int round = 0; round < 8; ++round) {
      bool ended = false;
      const std::string text =
          vocabulary.random_text(grammar, random, 40, ended);
      finished += ended ? 1 : 0;
      if (ended) {
        EXPECT_TRUE(reader.matches(text)) << source << "\n" << text;
      }
    }
  }
  EXPECT_GT(finished, 30);
}

TEST(GrammarState, RefusesWhatIsNotAllowedAndStaysWhereItWas) {
  const TestVocabulary vocabulary;
  GrammarState state(
      grammar_of_gbnf("root ::= \"ab\" \"c\"?"), vocabulary.made
  );
  EXPECT_THROW(state.accept('b'), Error);
  EXPECT_THROW(state.accept(vocabulary.special), Error);
  EXPECT_THROW(state.accept(vocabulary.stop), Error);
  EXPECT_THROW(state.accept(-1), Error);
  EXPECT_THROW(state.accept(100000), Error);
  state.accept('a');
  EXPECT_FALSE(state.may_end());
  const GrammarState copy = state;
  state.accept('b');
  EXPECT_TRUE(state.may_end());
  EXPECT_FALSE(state.must_end());
  state.accept(vocabulary.stop);
  EXPECT_TRUE(state.must_end());
  EXPECT_EQ(vocabulary.allowed(state), std::vector{vocabulary.stop});
  EXPECT_THROW(state.accept('c'), Error);
  GrammarState other = copy;
  EXPECT_EQ(vocabulary.allowed(other), std::vector<std::int32_t>{'b'});
}

TEST(GrammarState, ATokenMayHoldHalfACharacter) {
  const TestVocabulary vocabulary;
  GrammarState state(grammar_of_gbnf("root ::= [€] \"\\\"\""), vocabulary.made);
  const auto id_of = [&](const std::string& piece) {
    const auto found =
        std::find(vocabulary.bytes.begin(), vocabulary.bytes.end(), piece);
    return static_cast<std::int32_t>(found - vocabulary.bytes.begin());
  };
  EXPECT_EQ(
      vocabulary.allowed(state),
      (std::vector<std::int32_t>{0xE2, id_of("\xE2\x82")})
  );
  state.accept(0xE2);
  EXPECT_EQ(
      vocabulary.allowed(state),
      (std::vector<std::int32_t>{0x82, id_of("\x82\xAC"), id_of("\x82\xAC\"")})
  );
  state.accept(id_of("\x82\xAC\""));
  EXPECT_TRUE(state.must_end());
}

// A list by right recursion must not grow a stack, nor a long nested text
// anything that is not given back.
TEST(GrammarState, LongTextsStaySmall) {
  const TestVocabulary vocabulary;
  GrammarState list(
      grammar_of_gbnf("root ::= [a-c]+ | [a-c]+ \",\" root"), vocabulary.made
  );
  for (int i = 0; i < 20000; ++i) {
    list.accept('a');
    list.accept(',');
  }
  list.accept('b');
  EXPECT_TRUE(list.may_end());

  GrammarState nested(
      grammar_of_gbnf("root ::= \"(\" root \")\" | \"x\""), vocabulary.made
  );
  for (int i = 0; i < 200000; ++i) nested.accept('(');
  nested.accept('x');
  for (int i = 0; i < 200000; ++i) nested.accept(')');
  EXPECT_TRUE(nested.must_end());
}

// Every letter doubles the ways to read the text.
TEST(GrammarState, AGrammarThatTakesTooLongIsGivenUp) {
  const TestVocabulary vocabulary;
  const auto grammar = grammar_of_gbnf(
      "root ::= a\na ::= [a-z ] (a b | a c | b a | \"\")\n"
      "b ::= [a-z ] (b c | c | \"\")\nc ::= [a-z ] (c a | \"\")"
  );
  const auto letters_until_refused = [&] {
    GrammarState state(grammar, vocabulary.made);
    int letters = 0;
    try {
      for (; letters < 500; ++letters) {
        vocabulary.allowed(state);
        state.accept('a');
      }
    } catch (const UsageError&) {
    }
    return letters;
  };
  const int letters = letters_until_refused();
  EXPECT_GT(letters, 5);
  EXPECT_LT(letters, 500);
  // What one text used up is not missing to the next.
  EXPECT_GE(letters_until_refused(), letters);
}

// The tokens that may come next, as one text each; the last one stops.
std::vector<std::string> choices(
    GrammarState& state,
    const std::vector<std::string>& tokens
) {
  std::vector<float> logits(tokens.size() + 1);
  state.mask(logits);
  std::vector<std::string> out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!std::isinf(logits[i])) out.push_back(tokens[i]);
  }
  if (!std::isinf(logits.back())) out.emplace_back("end");
  return out;
}

struct FewTokens {
  const char* what;
  const char* source;
  std::vector<std::string> tokens;
  // Before each token, what may come; the first of them is taken.
  std::vector<std::vector<std::string>> path;
};

TEST(GrammarState, NoTokenLeadsToWhereNothingFollows) {
  const FewTokens cases[] = {
      {"a byte that no token has",
       "root ::= \"ax\" | \"bc\"",
       {"a", "b", "c"},
       {{"b"}, {"c"}}},
      {"a byte that only other characters have",
       "root ::= \"aã\" | \"bc\"",
       {"a", "b", "c", "é", "£"},
       {{"b"}, {"c"}}},
      {"a byte that only stands in longer tokens",
       "root ::= \"ab\" | \"c\"",
       {"a", "bc", "c"},
       {{"c"}}},
      {"a token that goes past it",
       "root ::= \"ab\" | \"c\"",
       {"a", "bc", "c", "ab"},
       {{"c", "ab"}}},
      {"what comes after a rule that calls itself",
       "root ::= item \"x\" | item \"y\" \"c\"\n"
       "item ::= \"(\" item \")\" | \"i\" | \"x\"",
       {"(", ")", "i", "y", "c"},
       {{"(", "i"}, {"(", "i"}, {"(", "i"}}},
      {"nothing can close it",
       "root ::= item \"!\"\nitem ::= \"(\" item \")\" | \"i\"",
       {"(", "i", "!"},
       {{"i"}, {"!"}}},
      {"a token over the end of a rule",
       "root ::= item \"!\"\nitem ::= \"(\" item \")\" | \"i\"",
       {"i", "(", ")!", ")"},
       {{"("}, {"i", "("}, {")!"}}},
      {"repeats that may end",
       "root ::= [a-z]* \"?\"? ",
       {"m", "n"},
       {{"m", "n", "end"}, {"m", "n", "end"}}},
  };
  for (const FewTokens& c : cases) {
    auto tokens = c.tokens;
    tokens.emplace_back();
    const auto stop = static_cast<std::int32_t>(c.tokens.size());
    GrammarState state(
        grammar_of_gbnf(c.source), grammar_vocabulary(tokens, {stop})
    );
    for (const auto& wanted : c.path) {
      EXPECT_EQ(choices(state, c.tokens), wanted) << c.what;
      const auto at = std::ranges::find(c.tokens, wanted.front());
      state.accept(static_cast<std::int32_t>(at - c.tokens.begin()));
    }
  }
}

// With tokens of whole characters alone, every text that is begun is ended.
TEST(GrammarState, TextsOfFewTokensAreFinished) {
  std::vector<std::string> tokens;
  for (const char* t :
       {"{", "}", "[", "]", ",", ":", "\"", "1", "0", "a", "é", "name",
        "\"name\"", "true", "中", " "}) {
    tokens.emplace_back(t);
  }
  const auto stop = static_cast<std::int32_t>(tokens.size());
  tokens.emplace_back();
  const auto vocabulary = grammar_vocabulary(tokens, {stop});
  const auto grammar = grammar_of_schema(parse_json(
      R"({"type": "object", "required": ["name"], "properties": {
        "name": {"enum": ["aã", "中a", "é", "né"]},
        "kind": {"enum": ["b", "a", null, true, false]},
        "more": {"type": "array", "items": {"$ref": "#"}}}})",
      "schema"
  ));
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    GrammarState state(grammar, vocabulary);
    std::string text;
    for (int i = 0; i < 40 && !state.must_end(); ++i) {
      std::vector<float> logits(tokens.size());
      state.mask(logits);
      std::vector<std::int32_t> ids;
      for (std::int32_t id = 0; id <= stop; ++id) {
        if (!std::isinf(logits[static_cast<std::size_t>(id)])) {
          ids.push_back(id);
        }
      }
      ASSERT_FALSE(ids.empty()) << text;
      const std::int32_t id = ids[random() % ids.size()];
      state.accept(id);
      text += tokens[static_cast<std::size_t>(id)];
    }
  }
}

TEST(GrammarState, NeedsTokensForSomeTextOfTheGrammar) {
  const auto letters = grammar_vocabulary({"a", "b", ""}, {2});
  EXPECT_THROW(
      GrammarState(grammar_of_gbnf("root ::= \"a\" \"c\""), letters), UsageError
  );
  GrammarState state(grammar_of_gbnf("root ::= \"a\" \"c\"?"), letters);
  std::vector<float> few(2);
  EXPECT_THROW(state.mask(few), UsageError);
  EXPECT_THROW(grammar_vocabulary({"a"}, {1}), UsageError);
}

}  // namespace
}  // namespace hearth::text::grammar
