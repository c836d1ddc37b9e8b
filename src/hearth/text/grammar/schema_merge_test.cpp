// Parts of allOf as one schema, against a validator that takes each part by
// itself.
#include <algorithm>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/grammar.h"

namespace hearth::text::grammar {
namespace {

// Whether the schema holds for a list of numbers or for one of them, word by
// word as JSON Schema has it.
bool valid(const Json& schema, const Json& value) {
  if (schema.is_boolean()) return schema.get<bool>();
  if (schema.contains("allOf")) {
    const Json& all = schema["allOf"];
    const bool hold = std::all_of(all.begin(), all.end(), [&](const Json& one) {
      return valid(one, value);
    });
    if (!hold) return false;
  }
  if (schema.contains("enum")) {
    const Json& list = schema["enum"];
    if (std::find(list.begin(), list.end(), value) == list.end()) return false;
  }
  if (!value.is_array()) return true;
  std::size_t listed = 0;
  if (schema.contains("prefixItems")) {
    const Json& prefix = schema["prefixItems"];
    listed = prefix.size();
    for (std::size_t i = 0; i < std::min(listed, value.size()); ++i) {
      if (!valid(prefix[i], value[i])) return false;
    }
  }
  if (schema.contains("items")) {
    for (std::size_t i = listed; i < value.size(); ++i) {
      if (!valid(schema["items"], value[i])) return false;
    }
  }
  const auto size = static_cast<int>(value.size());
  if (schema.contains("minItems") && size < schema["minItems"]) return false;
  return !schema.contains("maxItems") || size <= schema["maxItems"];
}

class Random {
 public:
  std::size_t below(std::size_t n) { return engine_() % n; }
  bool chance() { return below(2) == 0; }

  Json element(int depth = 0) {
    switch (below(5)) {
      case 0:
        return true;
      case 1:
        return below(4) != 0;
      case 2:
        if (depth == 0) return {{"allOf", {element(1), element(1)}}};
        [[fallthrough]];
      default:
        break;
    }
    Json list = Json::array();
    for (int value = 0; value < 3; ++value) {
      if (chance()) list.push_back(value);
    }
    if (list.empty()) list.push_back(below(3));
    return {{"enum", list}};
  }
  Json part() {
    Json made = {{"type", "array"}};
    if (chance()) {
      made["prefixItems"] = Json::array();
      for (std::size_t i = below(4); i > 0; --i) {
        made["prefixItems"].push_back(element());
      }
    }
    if (chance()) made["items"] = element();
    if (below(4) == 0) made["minItems"] = below(3);
    if (below(4) == 0) made["maxItems"] = 2 + below(3);
    return made;
  }

 private:
  std::mt19937 engine_{17};
};

void each_list(Json& list, const std::function<void(const Json&)>& seen) {
  seen(list);
  if (list.size() == 4) return;
  for (int value = 0; value < 3; ++value) {
    list.push_back(value);
    each_list(list, seen);
    list.erase(list.size() - 1);
  }
}

TEST(GrammarMerge, ListsThatEachPartTakes) {
  Random random;
  int held = 0, made = 0;
  for (int round = 0; round < 400; ++round) {
    Json schema = {{"allOf", Json::array()}};
    for (std::size_t i = 2 + random.below(2); i > 0; --i) {
      schema["allOf"].push_back(random.part());
    }
    std::shared_ptr<const Grammar> grammar;
    try {
      grammar = grammar_of_schema(schema);
      ++made;
    } catch (const UsageError&) {
      // Then nothing may hold for it.
    }
    Json list = Json::array();
    each_list(list, [&](const Json& one) {
      const bool is = valid(schema, one);
      held += is ? 1 : 0;
      EXPECT_EQ(grammar && is_whole_text(*grammar, to_json_line(one)), is)
          << to_json_line(schema) << "\n"
          << to_json_line(one);
    });
  }
  EXPECT_GT(made, 300);
  EXPECT_GT(held, 3000);
}

TEST(GrammarMerge, EnumsMeetInAnyOrderAndSpelling) {
  const auto grammar = grammar_of_schema(Json::parse(R"({"allOf": [
      {"enum": [1, {"a": 1, "b": [2]}, "x"]},
      {"enum": ["y", {"b": [2.0], "a": 1}, 1.0]}]})"));
  EXPECT_TRUE(is_whole_text(*grammar, R"({"a":1,"b":[2]})"));
  EXPECT_TRUE(is_whole_text(*grammar, "1"));
  EXPECT_FALSE(is_whole_text(*grammar, R"("x")"));
  // Told apart they are not: the same value is in both.
  EXPECT_THROW(
      grammar_of_schema(
          Json::parse(
              R"({"oneOf": [{"const": {"a": 1, "b": 2}}, {"const": {"b": 2, "a": 1}}]})"
          )
      ),
      UsageError
  );
}

TEST(GrammarMerge, OtherNamesAreNoneOfTheListed) {
  const auto grammar = grammar_of_schema(Json::parse(R"({"type": "object",
      "properties": {"ab": {"const": 1}, "abc": {"const": 2}, "é": {"const": 3},
      "": {"const": 4}}, "additionalProperties": {"const": 0}})"));
  for (const char* name : {"a", "abd", "abcd", "b", "è", "éé", "aé", "x"}) {
    const std::string text = std::string("{\"") + name + "\":0}";
    EXPECT_TRUE(is_whole_text(*grammar, text)) << text;
  }
  for (const char* name : {"ab", "abc", "é", ""}) {
    const std::string text = std::string("{\"") + name + "\":0}";
    EXPECT_FALSE(is_whole_text(*grammar, text)) << text;
  }
}

TEST(GrammarMerge, AnArrayEndsBeforeWhatNoValueCanBe) {
  const char* const element =
      R"({"allOf":[{"type":"integer"},{"type":"string"}]})";
  const auto grammar_of = [&](const std::string& more) {
    return grammar_of_schema(
        Json::parse(
            R"({"allOf":[{"type":"array"},{"type":"array","prefixItems":[)" +
            more + "]}]}"
        )
    );
  };
  const auto none = grammar_of(element);
  EXPECT_TRUE(is_whole_text(*none, "[]"));
  EXPECT_FALSE(is_whole_text(*none, "[1]"));
  EXPECT_FALSE(is_whole_text(*none, R"(["a"])"));
  const auto one = grammar_of(R"({"type":"null"},)" + std::string(element));
  EXPECT_TRUE(is_whole_text(*one, "[]"));
  EXPECT_TRUE(is_whole_text(*one, "[null]"));
  EXPECT_FALSE(is_whole_text(*one, "[null, 1]"));
  EXPECT_THROW(
      grammar_of_schema(
          Json::parse(
              R"({"type":"array","minItems":1,"prefixItems":[)" +
              std::string(element) + "]}"
          )
      ),
      UsageError
  );
}

}  // namespace
}  // namespace hearth::text::grammar
