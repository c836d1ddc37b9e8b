// What a source may cost, in units that are counted: a time would depend on
// the machine.
#include <string>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/compiled.h"
#include "hearth/text/grammar/front_ends.h"
#include "hearth/text/grammar/grammar.h"

namespace hearth::text::grammar {
namespace {

std::vector<std::string> names(int count) {
  std::vector<std::string> all;
  for (int i = 0; i < count; ++i) all.push_back("k" + std::to_string(i));
  return all;
}

Json properties(int count) {
  Json schema = Json::parse(R"({"type": "object", "properties": {}})");
  for (const auto& name : names(count)) {
    schema["properties"][name] = {{"type", "integer"}};
  }
  return schema;
}

// Of rules and automaton, uncached.
std::uint64_t units_of(const Json& schema, std::uint64_t most = Effort::kMost) {
  Effort effort(most);
  const Rules rules = schema_rules(schema, true, effort);
  const Grammar grammar(rules, "[test]", effort);
  return most - effort.left();
}

// Ten times the size may take little more than ten times the work.
template <typename Make>
void expect_linear(const char* what, const Make& make) {
  const std::uint64_t small = units_of(make(300)), large = units_of(make(3000));
  EXPECT_LT(large, 14 * small) << what << ": " << small << ", " << large;
  EXPECT_LT(large, std::uint64_t{10'000'000}) << what;
}

TEST(GrammarWork, GrowsWithTheSchema) {
  expect_linear("properties", properties);
  expect_linear("open properties", [](int n) {
    Json schema = properties(n);
    schema["additionalProperties"] = true;
    return schema;
  });
  expect_linear("required", [](int n) {
    Json schema = properties(n);
    schema["required"] = names(n);
    return schema;
  });
  expect_linear("names that are demanded alone", [](int n) {
    return Json{{"type", "object"}, {"required", names(n)}};
  });
  expect_linear("enum", [](int n) { return Json{{"enum", names(n)}}; });
  expect_linear("two enums", [](int n) {
    return Json{
        {"allOf", {{{"enum", names(n)}}, {{"enum", names(n)}, {"title", "b"}}}}
    };
  });
  expect_linear("oneOf of constants", [](int n) {
    Json schema = {{"oneOf", Json::array()}};
    for (int i = 0; i < n; ++i) schema["oneOf"].push_back({{"const", i}});
    return schema;
  });
  expect_linear("oneOf of objects with a mark", [](int n) {
    Json schema = {{"oneOf", Json::array()}};
    for (const auto& name : names(n)) {
      schema["oneOf"].push_back(
          {{"type", "object"},
           {"properties", {{"t", {{"const", name}}}}},
           {"required", {"t"}}}
      );
    }
    return schema;
  });
  expect_linear("prefix", [](int n) {
    return Json{
        {"prefixItems", std::vector<bool>(static_cast<std::size_t>(n), true)}
    };
  });
  expect_linear("references", [](int n) {
    Json schema = {{"anyOf", Json::array()}, {"$defs", Json::object()}};
    for (const auto& name : names(n)) {
      schema["anyOf"].push_back({{"$ref", "#/$defs/" + name}});
      schema["$defs"][name] = {{"const", name}};
    }
    return schema;
  });
}

// A bound is a number: it is not written out.
TEST(GrammarWork, ABoundCostsNothing) {
  const auto of = [](int most) {
    return units_of({{"type", "string"}, {"maxLength", most}});
  };
  EXPECT_LT(of(100'000), of(5'000) + 100);
  EXPECT_LT(of(100'000), 2'000U);
  const auto twice = [](int most) {
    return units_of(
        {{"type", "array"},
         {"items", {{"type", "string"}, {"minLength", most}}},
         {"maxItems", most}}
    );
  };
  EXPECT_LT(twice(100'000), twice(5'000) + 100);
}

TEST(GrammarWork, IsRefusedPastTheBudget) {
  Json both = {{"oneOf", Json::array()}};
  for (int i = 0; i < 5'000; ++i) both["oneOf"].push_back(properties(2));
  // Nothing tells them apart at once, so that the first pair is an error.
  EXPECT_THROW(units_of(both), UsageError);
  for (int i = 0; i < 5'000; ++i) {
    // Each pair is told apart, each by another property.
    Json& one = both["oneOf"][static_cast<std::size_t>(i)];
    one["required"] = {"k0", "k1"};
    one["properties"]["k0"] = {{"const", i / 2}};
    one["properties"]["k1"] = {{"const", i % 2}};
  }
  EXPECT_THROW(units_of(both), EffortError);
  EXPECT_THROW(units_of(properties(1000), 1000), EffortError);
  Effort effort(1000);
  EXPECT_THROW(
      grammar_of_schema(properties(1001), {.effort = &effort}), EffortError
  );
  Effort little(10);
  EXPECT_THROW(
      grammar_of_gbnf("root ::= \"a\"{9} [a-z]", &little), EffortError
  );
}

// Names of any length stand above thousands of schemas, and rules.
TEST(GrammarWork, LongNamesAreNotCopiedIntoEveryPlace) {
  Json schema = {{"properties", Json::object()}};
  Json& deep = schema["properties"][std::string(1'000'000, 'n')];
  deep = {{"prefixItems", Json::array()}};
  for (int i = 0; i < 15'000; ++i) {
    deep["prefixItems"].push_back({{"type", "integer"}});
  }
  Effort effort;
  const Rules rules = schema_rules(schema, true, effort);
  std::size_t bytes = 0;
  for (const Rule& rule : rules.rules) bytes += rule.name.size();
  EXPECT_LT(bytes, std::size_t{20'000'000});
  const std::string name(300, 'n');
  EXPECT_THROW(
      grammar_of_gbnf("root ::= " + name + "\n" + name + " ::= \"a\""),
      UsageError
  );
}

}  // namespace
}  // namespace hearth::text::grammar
