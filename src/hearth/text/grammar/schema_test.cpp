// JSON schemas: what their grammars take, and what is refused.
#include <algorithm>
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

bool accepts(
    const std::shared_ptr<const Grammar>& grammar,
    std::string_view text
) {
  static const TestVocabulary vocabulary;
  GrammarState state(grammar, vocabulary.made);
  try {
    for (const char c : text) state.accept(static_cast<unsigned char>(c));
  } catch (const Error&) {
    return false;
  }
  return state.may_end();
}

struct Case {
  const char* schema;
  std::vector<const char*> good, bad;
};

const std::vector<Case> kCases{
    {R"({"type": "string"})",
     {R"("")", R"("a\n\u00e9é\ud83d\ude00")"},
     {"", "a", R"("a)", "\"\n\"", R"("\ud83d")", R"("\x")", "1"}},
    {R"({"type": "string", "minLength": 2, "maxLength": 3})",
     {R"("ab")", R"("é€😀")", R"("\ud83d\ude00a")"},
     {R"("a")", R"("abcd")", R"("\ud83d\ude00")"}},
    {R"({"type": "string", "pattern": "^[a-c]+\"?$"})",
     {R"("abc")", R"("a\"")"},
     {R"("")", R"("abd")", R"("a"")"}},
    {R"({"type": "string", "pattern": "b|^c"})",
     {R"("abc")", R"("cx")", R"("b")"},
     {R"("ac")", R"("")"}},
    {R"({"type": "string", "format": "date"})",
     {R"("2024-02-28")"},
     {R"("2024-02-30")", R"("2024-2-3")", R"("2024-13-01")"}},
    {R"({"type": "string", "format": "date-time"})",
     {R"("2024-12-31T23:59:59Z")", R"("2024-01-01T00:00:00.5+01:30")"},
     {R"("2024-01-01T24:00:00Z")", R"("2024-01-01")"}},
    {R"({"type": "string", "format": "uuid"})",
     {R"("123e4567-e89b-12d3-a456-426614174000")"},
     {R"("123e4567")"}},
    {R"({"type": "string", "format": "email"})",
     {R"("a.b@c-d.org")"},
     {R"("a@b")", R"("@b.c")", R"("a b@c.d")"}},
    {R"({"type": "integer"})",
     {"0", "-1", "123456789"},
     {"-0", "01", "1.5", "1e3", "-", ""}},
    {R"({"type": "integer", "minimum": -12, "maximum": 105})",
     {"-12", "-9", "-1", "0", "7", "99", "100", "105"},
     {"-13", "-20", "106", "110", "200", "1000", "-0"}},
    {R"({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 20.5})",
     {"1", "20"},
     {"0", "21", "-1"}},
    {R"({"type": "integer", "minimum": 987654})",
     {"987654", "987660", "1000000", "999999999999999999"},
     {"987653", "99999", "0", "-1000000"}},
    {R"({"type": "number"})",
     {"0", "-0.5", "1e10", "12.25E-3"},
     {".5", "1.", "01", "1e999", "+1", "NaN"}},
    {R"({"type": "number", "minimum": 0, "maximum": 1})",
     {"0", "0.5", "1", "0.999"},
     {"-0.5", "1.1", "2", "1.0001"}},
    {R"({"type": "number", "minimum": -1.5, "exclusiveMaximum": 2})",
     {"-1.500", "-1.499", "-0.001", "0.000", "1.999", "1.2500"},
     {"-1.501", "2.000", "2", "3.1"}},
    {R"({"type": "number", "exclusiveMinimum": 0})",
     {"0.01", "12.50"},
     {"0.00", "-1.00", "0"}},
    {R"({"enum": ["a", 1, null, {"x": [1, 2]}]})",
     {R"("a")", "1", "null", R"({"x":[1,2]})"},
     {"2", R"("b")", "true"}},
    {R"({"type": "string", "enum": ["a", 1]})", {R"("a")"}, {"1"}},
    {R"({"const": "x\"y"})", {R"("x\"y")"}, {R"("x")"}},
    // A whole number that no integer of this machine holds.
    {R"({"type": "integer", "enum": [1e300, 5]})", {"1e+300", "5"}, {"1"}},
    {R"({"type": ["string", "null"]})", {R"("")", "null"}, {"1"}},
    {R"({"type": "array", "items": {"type": "boolean"}, "minItems": 1,
          "maxItems": 3})",
     {"[true]", "[true, false]", "[\n  true,\n  false,\n  true\n]"},
     {"[]", "[true,false,true,true]", "[1]", "[true ,false]", "[true,]"}},
    {R"({"type": "array", "prefixItems": [{"type": "integer"},
          {"type": "string"}], "items": false})",
     {"[]", "[1]", R"([1,"a"])"},
     {R"(["a"])", R"([1,"a",2])"}},
    {R"({"type": "array", "prefixItems": [{"const": 1}], "minItems": 2,
          "items": {"const": 2}, "maxItems": 3})",
     {"[1,2]", "[1,2,2]"},
     {"[1]", "[2,2]", "[1,2,2,2]"}},
    {R"({"type": "array", "maxItems": 0})", {"[]"}, {"[1]"}},
    {R"({"type": "object", "properties": {"a": {"type": "integer"},
          "b": {"type": "boolean"}}, "required": ["a", "b"],
          "additionalProperties": false})",
     {R"({"a":1,"b":true})", "{\n  \"a\": 1,\n  \"b\": true\n}"},
     {"{}", R"({"a":1})", R"({"b":true,"a":1})", R"({"a":1,"b":true,"c":1})",
      R"({"a" : 1,"b":true})"}},
    {R"({"type": "object", "properties": {"a": {"const": 1}, "b": {"const": 2},
          "c": {"const": 3}}, "required": ["b"]})",
     {R"({"b":2})", R"({"a":1,"b":2})", R"({"b":2,"c":3})",
      R"({"a":1, "b":2, "c":3})"},
     {"{}", R"({"a":1})", R"({"a":1,"c":3})", R"({,"b":2})"}},
    {R"({"properties": {"a": {"const": 1}, "b": {"const": 2}}})",
     {"{}", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
     {R"({"b":2,"a":1})", R"({"x":1})", "1"}},
    {R"({"type": "object", "properties": {"ab": {"const": 1}, "ac": {"const": 2}},
          "additionalProperties": {"type": "boolean"}})",
     {"{}", R"({"ab":1})", R"({"x":true})", R"({"ab":1,"a":true,"abc":false})",
      R"({"é":true,"":false})"},
     {R"({"ab":true})", R"({"ac":1})", R"({"x":1})", R"({"x":true,"ab":1})"}},
    {R"({"type": "object", "required": ["k"]})",
     {R"({"k":[]})", R"({"k":1,"x":{}})"},
     {"{}", R"({"x":1})"}},
    {R"({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]})",
     {"1", "[]", "[[1],2,[[]]]"},
     {"true", "[true]", "["}},
    {R"({"type": "object", "properties": {"k": {"type": "string"}},
          "required": ["k"], "anyOf": [{"properties": {"k": {"const": "a"},
          "v": {"const": 1}}}, {"properties": {"k": {"const": "b"}}}]})",
     {R"({"k":"a","v":1})", R"({"k":"a"})", R"({"k":"b"})"},
     {R"({"k":"c"})", R"({"k":"b","v":1})"}},
    {R"({"oneOf": [{"type": "object", "properties": {"t": {"const": "x"},
          "n": {"type": "integer"}}, "required": ["t", "n"]},
          {"type": "object", "properties": {"t": {"enum": ["y", "z"]}},
          "required": ["t"]}, {"type": "null"}]})",
     {R"({"t":"x","n":5})", R"({"t":"z"})", "null"},
     {R"({"t":"x"})"}},
    {R"({"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {"const": 2}},
          "required": ["b"]}], "$defs": {"base": {"type": "object",
          "properties": {"a": {"type": "integer", "minimum": 3}},
          "required": ["a"]}}})",
     {R"({"a":3,"b":2})"},
     {R"({"a":2,"b":2})", R"({"b":2})"}},
    {R"({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object",
          "properties": {"v": {"type": "integer"}, "next": {"anyOf":
          [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
          "required": ["v", "next"], "additionalProperties": false}}})",
     {R"({"v":1,"next":null})", R"({"v":1,"next":{"v":2,"next":null}})"},
     {R"({"v":1})", R"({"v":1,"next":{}})"}},
    {"{}",
     {"1", R"({"a":[{}, [], "x", -1.5e3, true, false, null]})"},
     {"", "{,}", "[1 ,2]", "tru"}},
    {R"({"title": "T", "description": "d", "$schema": "s", "$id": "i",
          "examples": [1], "default": 1, "$comment": "c", "type": "null"})",
     {"null"},
     {"1"}},
};

TEST(GrammarSchema, TakesWhatIsValidAndNothingElse) {
  for (const Case& one : kCases) {
    const auto grammar = grammar_of_schema(Json::parse(one.schema));
    for (const char* text : one.good) {
      EXPECT_TRUE(accepts(grammar, text)) << one.schema << "\n" << text;
    }
    for (const char* text : one.bad) {
      EXPECT_FALSE(accepts(grammar, text)) << one.schema << "\n" << text;
    }
  }
}

TEST(GrammarSchema, EveryFinishedTextIsReadByThePlainReaderAndIsJson) {
  const TestVocabulary vocabulary;
  std::mt19937 random(3);
  int finished = 0;
  for (const Case& one : kCases) {
    const Json schema = Json::parse(one.schema);
    Effort effort;
    const Rules rules = schema_rules(schema, true, effort);
    PlainReader reader(rules);
    const auto grammar = grammar_of_schema(schema);
    for (int round = 0; round < 3; ++round) {
      bool ended = false;
      const std::string text =
          vocabulary.random_text(grammar, random, 60, ended);
      EXPECT_TRUE(ended ? reader.matches(text) : reader.begins(text))
          << one.schema << "\n"
          << text;
      if (!ended) continue;
      ++finished;
      EXPECT_TRUE(Json::accept(text)) << one.schema << "\n" << text;
    }
  }
  EXPECT_GT(finished, 40);
}

TEST(GrammarSchema, AnyObject) {
  const auto grammar = grammar_of_any_json();
  EXPECT_TRUE(accepts(grammar, R"({"a": {"b": [1, "x"]}, "c": null})"));
  EXPECT_TRUE(accepts(grammar, "{}"));
  EXPECT_FALSE(accepts(grammar, "[]"));
  EXPECT_FALSE(accepts(grammar, "{} "));
  std::string deep;
  for (int i = 0; i < 5000; ++i) deep += "{\"a\":[";
  deep += "1";
  for (int i = 0; i < 5000; ++i) deep += "]}";
  EXPECT_TRUE(accepts(grammar, deep));
}

TEST(GrammarSchema, RefusesByNameAndPlace) {
  const std::vector<std::pair<const char*, const char*>> wrong{
      {R"({"type": "object", "properties": {"a": {"not": {}}}})",
       "the keyword 'not' is not supported, at #/properties/a"},
      {R"({"if": {}})", "'if'"},
      {R"({"patternProperties": {}})", "'patternProperties'"},
      {R"({"type": "array", "uniqueItems": true})", "'uniqueItems'"},
      {R"({"type": "integer", "multipleOf": 3})", "'multipleOf'"},
      {R"({"type": "string", "format": "iri"})", "'format' \"iri\""},
      {R"({"type": "string", "pattern": "(?=a)b"})", "lookahead"},
      {R"({"type": "string", "pattern": "a", "maxLength": 3})",
       "one at a time"},
      {R"({"type": "thing"})", "'type' must be"},
      {R"({"$ref": "http://x/y"})", "must point into the schema"},
      {R"({"$ref": "#/$defs/none"})", "which is not there"},
      {R"({"$ref": "#"})", "left-recursive"},
      {R"({"oneOf": [{"type": "integer"}, {"type": "number"}]})",
       "may both hold"},
      {R"({"oneOf": [{"properties": {}}, {"type": "null"}]})", "may both hold"},
      {R"({"enum": []})", "no value is left"},
      {R"({"type": "integer", "minimum": 5, "maximum": 4})", "lies between"},
      {R"({"type": "object", "required": ["a"], "additionalProperties": false})",
       "'a' must be allowed"},
      {R"({"type": "object", "properties": {"a": {"$ref": "#"}},
          "required": ["a"]})",
       "must allow a finite text"},
      {R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})", "'pattern'"},
      {R"({"type": "string", "maxLength": -1})", "'maxLength'"},
      {R"([1])", "a schema must be"},
      {R"({"items": [{}]})", "'prefixItems'"},
  };
  for (const auto& [schema, part] : wrong) {
    try {
      grammar_of_schema(Json::parse(schema));
      ADD_FAILURE() << schema;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << schema << "\n"
          << error.what();
    }
  }
}

// Nesting that doubles wherever a part stands twice, and counts that multiply.
TEST(GrammarSchema, LargeSchemasStaySmallOrAreRefused) {
  Json nested = Json::parse(R"({"type": "integer"})");
  for (int i = 0; i < 25; ++i) {
    nested = {
        {"type", "array"},
        {"items",
         {{"type", "object"}, {"properties", {{"a", nested}, {"b", nested}}}}}
    };
    if (i >= 4) nested["items"]["properties"].erase("b");
  }
  EXPECT_TRUE(accepts(grammar_of_schema(nested), R"([{"a":[{}]}])"));
  const auto long_text = grammar_of_schema(
      Json::parse(
          R"({"type": "string", "minLength": 5000, "maxLength": 20000})"
      )
  );
  EXPECT_TRUE(accepts(long_text, "\"" + std::string(20000, 'x') + "\""));
  EXPECT_FALSE(accepts(long_text, "\"" + std::string(20001, 'x') + "\""));
  EXPECT_FALSE(accepts(long_text, "\"" + std::string(4999, 'x') + "\""));
}

}  // namespace
}  // namespace hearth::text::grammar
