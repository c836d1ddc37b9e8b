// Sources that nest deep or chain long are compiled or refused with one clear
// error, on the small stack of a thread.
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/front_ends.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/small_stack_test.h"
#include "hearth/text/grammar/vocabulary_test.h"

namespace hearth::text::grammar {
namespace {

bool takes(const std::shared_ptr<const Grammar>& grammar, const char* text) {
  const TestVocabulary vocabulary;
  GrammarState state(grammar, vocabulary.made);
  std::vector<float> logits(vocabulary.bytes.size());
  try {
    state.mask(logits);
    state.accept_bytes(text);
  } catch (const Error&) {
    return false;
  }
  return state.may_end();
}

// Compiled, and right about these; or refused.
enum class Outcome { compiled, refused };
template <typename Make>
Outcome outcome_of(const Make& make, const char* good, const char* bad) {
  Outcome outcome = Outcome::refused;
  on_small_stack([&] {
    try {
      const auto grammar = make();
      EXPECT_TRUE(takes(grammar, good)) << good;
      EXPECT_FALSE(takes(grammar, bad)) << bad;
      outcome = Outcome::compiled;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find("must"), std::string::npos)
          << error.what();
    }
  });
  return outcome;
}

std::string chain(int rules, const std::string& before) {
  std::string source = "root ::= r0\n";
  for (int i = 0; i < rules; ++i) {
    source += "r" + std::to_string(i) + " ::= " + before + "r" +
              std::to_string(i + 1) + "\n";
  }
  return source + "r" + std::to_string(rules) + " ::= \"a\"\n";
}

TEST(GrammarDepth, LongPrefixes) {
  const auto of = [](int count, const Json& one, const char* good,
                     const char* bad) {
    Json schema = Json::object();
    schema["prefixItems"] = Json::array();
    for (int i = 0; i < count; ++i) schema["prefixItems"].push_back(one);
    return outcome_of([&] { return grammar_of_schema(schema); }, good, bad);
  };
  EXPECT_EQ(of(10'000, true, "[1,{},2]", "[,]"), Outcome::compiled);
  EXPECT_EQ(
      of(5'000, Json::parse(R"({"type": "integer"})"), "[1,2]", "[1,{}]"),
      Outcome::compiled
  );
  // Booleans are schemas too.
  Json many = Json::parse(R"({"prefixItems": []})");
  for (int i = 0; i < 20'000; ++i) many["prefixItems"].push_back(true);
  EXPECT_EQ(
      outcome_of([&] { return grammar_of_schema(many); }, "[]", "["),
      Outcome::refused
  );
}

TEST(GrammarDepth, LongChainsOfRules) {
  const auto of = [](const std::string& source) {
    return outcome_of([&] { return grammar_of_gbnf(source); }, "a", "b");
  };
  EXPECT_EQ(of(chain(20'000, "")), Outcome::compiled);
  EXPECT_EQ(of(chain(5'000, "\"x\"? ")), Outcome::compiled);
  // The chain is not gone through again for each who calls it.
  std::string often = chain(20'000, "");
  often.replace(0, 11, "root ::= r0");
  for (int i = 0; i < 3000; ++i) often.insert(11, " | r0");
  EXPECT_EQ(of(often), Outcome::compiled);
}

TEST(GrammarDepth, NestedGroupsAndBranches) {
  std::string plus = "a", four = "a";
  for (int i = 0; i < 99; ++i) {
    plus = "(" + plus + ")+";
    four = "(" + four + "){1,4}";
  }
  EXPECT_EQ(
      outcome_of([&] { return grammar_of_regex(plus); }, "aaa", "b"),
      Outcome::compiled
  );
  EXPECT_EQ(
      outcome_of([&] { return grammar_of_regex(four); }, "aaa", "b"),
      Outcome::compiled
  );
  Json deep = Json::parse(R"({"type": "integer"})");
  for (int i = 0; i < 30; ++i) {
    deep = {{"anyOf", {deep, {{"type", "null"}}}}};
    deep = {{"type", "object"}, {"properties", {{"a", deep}}}};
  }
  EXPECT_EQ(
      outcome_of(
          [&] { return grammar_of_schema(deep); }, R"({"a":{"a":null}})",
          R"({"a":1})"
      ),
      Outcome::compiled
  );
}

TEST(GrammarDepth, SchemasThatReferToThemselvesAndAreMerged) {
  const Json schema = Json::parse(R"({
      "allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}],
      "$defs": {"a": {"properties": {"n": {"$ref": "#/$defs/a"}}},
                "b": {"properties": {"n": {"$ref": "#/$defs/b"}}}}})");
  EXPECT_EQ(
      outcome_of([&] { return grammar_of_schema(schema); }, "{}", "["),
      Outcome::refused
  );
}

TEST(GrammarDepth, AnExpressionIsMadeAndFreedWithoutRecursion) {
  on_small_stack([] {
    ExprPtr deep = text("a");
    EXPECT_THROW(
        {
          for (int i = 0; i < 1'000'000; ++i) {
            deep = optional(sequence({text("b"), deep}));
          }
        },
        UsageError
    );
    // Made past the makers, as deep as memory goes.
    for (int i = 0; i < 300'000; ++i) {
      auto above = std::make_shared<Expr>();
      above->parts = {deep};
      deep = above;
    }
    deep = nullptr;
  });
}

}  // namespace
}  // namespace hearth::text::grammar
