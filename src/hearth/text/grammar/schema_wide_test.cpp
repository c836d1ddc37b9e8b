// Formats, discriminators, and what becomes of keywords that a grammar cannot
// hold.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/grammar.h"

namespace hearth::text::grammar {
namespace {

std::shared_ptr<const Grammar> wide(const char* schema) {
  return grammar_of_schema(Json::parse(schema), {.strict = false});
}

void expect_format(
    const char* format,
    const std::vector<std::string>& good,
    const std::vector<std::string>& bad
) {
  const auto grammar =
      grammar_of_schema({{"type", "string"}, {"format", format}});
  for (const std::string& text : good) {
    EXPECT_TRUE(is_whole_text(*grammar, "\"" + text + "\"")) << text;
  }
  for (const std::string& text : bad) {
    EXPECT_FALSE(is_whole_text(*grammar, "\"" + text + "\"")) << text;
  }
}

TEST(GrammarFormats, AreHeld) {
  expect_format(
      "uri",
      {"https://example.org", "http://a-b.c:80/x/y?q=1&r=%20#f",
       "mailto:a@b.org", "urn:isbn:0451450523", "ftp://u:p@127.0.0.1/",
       "http://[2001:db8::7]/c=GB?one", "file:///etc/hosts"},
      {"", "example.org/x", "//example.org", "http://a b", "http://a/%zz",
       "1http://a.b", "http://[::1", "http://a.b#c#d"}
  );
  expect_format(
      "hostname", {"localhost", "a.example.org", "x-1.y2", "1and1.com"},
      {"", "-a", "a-", ".a", "a.", "a..b", "a_b", "192.168.1.1"}
  );
  expect_format(
      "ipv4", {"0.0.0.0", "255.255.255.255", "10.20.3.4"},
      {"256.1.1.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"}
  );
  expect_format(
      "ipv6",
      {"::", "::1", "1::", "2001:db8::7", "1:2:3:4:5:6:7:8",
       "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "fe80::Ab:cd", "1::3:4:5:6:7:8"},
      {"", ":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3",
       "12345::", "g::", "1:2:3:4:5:6:7:8::", ":1", "1:"}
  );
  expect_format(
      "duration",
      {"P1Y", "P1Y2M3D", "PT1H", "P3DT4H5M6S", "P2W", "PT36S", "P1M", "PT5M",
       "P1YT1S"},
      {"P", "PT", "1Y", "P1", "P1YT", "P1H", "PT1D", "P1W2D", "P1Y3D", "PT1H3S",
       "P-1D"}
  );
}

TEST(GrammarDiscriminator, TellsBranchesApart) {
  const char* const source = R"({
      "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
      "discriminator": {"propertyName": "kind", "mapping":
          {"cat": "#/$defs/Cat", "dog": "#/$defs/Dog"}},
      "$defs": {
        "Cat": {"type": "object", "properties": {"kind": {"const": "cat",
            "type": "string", "default": "cat"}, "lives": {"type": "integer"}}},
        "Dog": {"type": "object", "properties": {"kind": {"type": "string"},
            "name": {"type": "string"}}, "required": ["name"]}}})";
  const auto grammar = grammar_of_schema(Json::parse(source));
  EXPECT_TRUE(is_whole_text(*grammar, R"({"kind":"cat","lives":9})"));
  EXPECT_TRUE(is_whole_text(*grammar, R"({"kind":"dog","name":"a"})"));
  for (const char* bad :
       {"{}", R"({"kind":"dog"})", R"({"kind":"cat","name":"a"})",
        R"({"kind":"cow","name":"a"})", R"({"name":"a"})"}) {
    EXPECT_FALSE(is_whole_text(*grammar, bad)) << bad;
  }
}

// Clients write the ends of their own types.
TEST(GrammarWide, BoundsBeyondAllNumbersAreLeftOut) {
  struct Case {
    const char* schema;
    std::vector<const char*> good, bad;
  };
  const Case cases[] = {
      {R"({"type":"string","maxLength":1000000})", {R"("abc")"}, {"1"}},
      {R"({"type":"string","minLength":200000})", {R"("abc")"}, {"1"}},
      {R"({"type":"array","maxItems":1000000,"minItems":1})", {"[1]"}, {"[]"}},
      {R"({"type":"integer","minimum":0,"maximum":9223372036854775807})",
       {"0", "5", "999999999999999999"},
       {"-1", "0.5"}},
      {R"({"type":"integer","minimum":-9223372036854775808,
           "maximum":18446744073709551615})",
       {"-7", "7"},
       {"0.5"}},
      {R"({"type":"integer","minimum":3,"maximum":1e20})", {"3"}, {"2"}},
      {R"({"type":"number","minimum":-3.4028234663852886e+38,
           "maximum":3.4028234663852886e+38})",
       {"-1.5", "1e9"},
       {"true"}},
      {R"({"type":"number","exclusiveMinimum":1e-9,"maximum":1})",
       {"0.50", "1.00"},
       {"0", "0.00", "-0.50", "1.50"}},
      {R"({"type":"number","minimum":-1e-300,"maximum":1e20})",
       {"0", "12.5"},
       {"-1.5"}},
      {R"({"type":"number","minimum":0.000001,"maximum":100000000000000})",
       {"0.500000", "12.000000"},
       {"0.000000", "-1.000000"}},
      {R"({"type":"array","items":[{"type":"integer"},{"type":"string"}],
           "additionalItems":false})",
       {"[]", "[1]", R"([1, "a"])"},
       {R"(["a"])", R"([1, "a", 1])"}},
      {R"({"allOf":[{"type":"array","items":[{"type":"integer"}]},
           {"additionalItems":{"type":"null"},"items":[true]}]})",
       {"[1, null]"},
       {R"(["a"])", "[1, 2]"}},
  };
  for (const auto& [schema, good, bad] : cases) {
    EXPECT_THROW(grammar_of_schema(Json::parse(schema)), UsageError) << schema;
    const auto grammar = wide(schema);
    for (const char* text : good) {
      EXPECT_TRUE(is_whole_text(*grammar, text)) << schema << " " << text;
    }
    for (const char* text : bad) {
      EXPECT_FALSE(is_whole_text(*grammar, text)) << schema << " " << text;
    }
  }
}

TEST(GrammarWide, WhatCannotBeIsRefusedAllTheSame) {
  for (const char* schema :
       {R"({"type":"string","maxLength":-1})",
        R"({"type":"string","maxLength":1.5})",
        R"({"type":"array","maxItems":"many"})",
        R"({"type":"integer","maximum":"much"})"}) {
    EXPECT_THROW(wide(schema), UsageError) << schema;
  }
}

TEST(GrammarErrors, AreShortWhateverTheSchemaHas) {
  const std::string much(100'000, 'x');
  const Json schemas[] = {
      {{"$ref", "#/$defs/" + much}},
      {{"$ref", much}},
      {{"type", much}},
      {{"type", "string"}, {"maxLength", much}},
      {{"type", "object"}, {much, 1}},
      {{"type", "object"},
       {"additionalProperties", false},
       {"required", Json::array({much})}},
  };
  for (const Json& schema : schemas) {
    try {
      grammar_of_schema(schema);
      ADD_FAILURE();
    } catch (const UsageError& e) {
      EXPECT_LT(std::string_view(e.what()).size(), 500U);
    }
  }
}

struct WideCase {
  const char* schema;
  std::vector<const char*> good, bad;
};

// Refused when strict. Else every valid text is taken, and the rest of the
// schema holds.
TEST(GrammarWide, WhatCannotBeHeldIsLeftOut) {
  const std::vector<WideCase> cases{
      {R"({"type": "string", "pattern": "^(?=.{2,3}$)[a-z]+(?!x)$"})",
       {R"("ab")", R"("a")"},
       {R"("A")", R"("")"}},
      {R"({"type": "string", "pattern": "\\bab\\b"})",
       {R"("ab")", R"("xab")"},
       {R"("b")"}},
      {R"({"type": "string", "pattern": "(a)\\1"})",
       {R"("aa")", R"("b")"},
       {"1"}},
      {R"({"type": "string", "pattern": "(?i)abc", "maxLength": 4})",
       {R"("ABC")"},
       {R"("abcde")"}},
      {R"({"type": "string", "pattern": "^[ab]+$", "minLength": 2})",
       {R"("ab")"},
       {R"("c")"}},
      {R"({"type": "string", "format": "iri"})", {R"("a")"}, {"1"}},
      {R"({"type": "array", "items": {"type": "integer"}, "uniqueItems": true})",
       {"[1,2]"},
       {R"(["a"])"}},
      {R"({"type": "integer", "multipleOf": 5, "minimum": 3})",
       {"10"},
       {"1", "10.5"}},
      {R"({"type": "number", "multipleOf": 0.5})", {"1.5"}, {R"("a")"}},
      {R"({"type": "object", "properties": {"a": {"type": "integer",
           "unknown": 1}}, "minProperties": 1, "not": {}})",
       {R"({"a":1})"},
       {R"({"a":"x"})"}},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
       {"1", "1.5"},
       {"null"}},
      {R"({"enum": ["a", "bb"], "minLength": 2})", {R"("bb")"}, {R"("c")"}},
      {R"({"allOf": [{"type": "string", "pattern": "^a"}, {"pattern": "b$"}]})",
       {R"("ab")"},
       {R"("b")"}},
  };
  for (const WideCase& one : cases) {
    EXPECT_THROW(grammar_of_schema(Json::parse(one.schema)), UsageError)
        << one.schema;
    const auto grammar = wide(one.schema);
    for (const char* text : one.good) {
      EXPECT_TRUE(is_whole_text(*grammar, text)) << one.schema << "\n" << text;
    }
    for (const char* text : one.bad) {
      EXPECT_FALSE(is_whole_text(*grammar, text)) << one.schema << "\n" << text;
    }
  }
}

TEST(GrammarWide, MistakesAreStillRefused) {
  for (const char* schema :
       {R"({"type": "thing"})", R"({"$ref": "#/$defs/none"})", R"([1])",
        R"({"type": "string", "pattern": 1})", R"({"required": "a"})"}) {
    EXPECT_THROW(wide(schema), UsageError) << schema;
  }
}

}  // namespace
}  // namespace hearth::text::grammar
