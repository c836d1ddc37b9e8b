#include "hearth/text/grammar/regex.h"

#include <random>
#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/grammar.h"
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

TEST(GrammarRegex, AgreesWithTheStandardLibrary) {
  const char* const patterns[] = {
      "a*b+c?",      "(ab|a)(bc|c)?", "[a-c]{2,4}",     "[^ab]*",
      "(a|b)*abb",   "a{3}|b{2,}",    "(?:ab)+?c",      "^(a|bc)*$",
      "\\w+[.-]\\d", "a.c|.b",        "((a|b)?c){1,3}", "\\(\\)|\\[a\\]",
      "[\\d-]+",     "(a*)*b",        "x{0}a",          ""
  };
  std::mt19937 random(5);
  const std::string letters = "aabbcc.-1[]() x";
  for (const char* pattern : patterns) {
    const std::regex standard(pattern, std::regex::ECMAScript);
    const auto grammar = grammar_of_regex(pattern);
    for (int i = 0; i < 400; ++i) {
      std::string text;
      const std::size_t size = random() % 7;
      for (std::size_t j = 0; j < size; ++j) {
        text += letters[random() % letters.size()];
      }
      ASSERT_EQ(accepts(grammar, text), std::regex_match(text, standard))
          << pattern << " on '" << text << "'";
    }
  }
}

TEST(GrammarRegex, ReadsCharactersNotBytes) {
  const auto one = grammar_of_regex("[^a]");
  EXPECT_TRUE(accepts(one, "é"));
  EXPECT_TRUE(accepts(one, "😀"));
  EXPECT_FALSE(accepts(one, "éé"));
  EXPECT_FALSE(accepts(one, "\xC3"));
  EXPECT_FALSE(accepts(one, "\xED\xA0\x80"));
  EXPECT_TRUE(accepts(grammar_of_regex("[à-ü]+"), "éö"));
  EXPECT_TRUE(accepts(grammar_of_regex("\\u00e9\\x41\\u{1F600}"), "éA😀"));
  EXPECT_TRUE(accepts(grammar_of_regex("\\ud83d\\ude00"), "😀"));
  EXPECT_TRUE(accepts(grammar_of_regex("\\p{Lu}\\p{L}*\\P{L}"), "Éa1"));
  EXPECT_FALSE(accepts(grammar_of_regex("\\p{Lu}"), "é"));
  EXPECT_FALSE(accepts(grammar_of_regex("."), "\n"));
}

TEST(GrammarRegex, RefusesByName) {
  const std::pair<const char*, const char*> wrong[] = {
      {"(?=a)b", "lookahead"},
      {"(?!a)b", "lookahead"},
      {"(?<=a)b", "lookbehind"},
      {"(?<!a)b", "lookbehind"},
      {"(a)\\1", "back references"},
      {"\\k<x>", "back references"},
      {"\\bfoo", "word boundaries"},
      {"(?>a)", "atomic groups"},
      {"a*+", "possessive"},
      {"(?i)a", "flags"},
      {"a(^b)", "'^' is supported"},
      {"(a$)b", "'$' is supported"},
      {"a$b", "'$' must be"},
      {"[[:alpha:]]", "POSIX"},
      {"(a", "must be closed"},
      {"a)", "must close"},
      {"[a", "must be closed"},
      {"*a", "must follow something"},
      {"a{2,1}", "in order"},
      {"a{,3}", "a number must follow"},
      {"a{999999}", "at most"},
      {"[z-a]", "in order"},
      {"\\q", "'\\q'"},
      {"\\p{Xx}", "property 'Xx'"},
      {"[]a]", "must not be first"},
      {"a**", "must not follow another"},
      {"\xFF", "must be UTF-8"},
      {"\\ud800", "pairs"},
      {"[^\\u0000-\\u{10FFFF}]", "must allow a finite text"},
      {"(a?b?){90000}", "at most 256 times"},
  };
  for (const auto& [pattern, part] : wrong) {
    try {
      grammar_of_regex(pattern);
      ADD_FAILURE() << pattern;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << pattern << "\n"
          << error.what();
    }
  }
}

TEST(GrammarGbnf, RefusesByName) {
  const std::pair<const char*, const char*> wrong[] = {
      {"root ::= root \"a\" | \"b\"", "root is left-recursive"},
      {"root ::= a \"x\"\na ::= b? c\nb ::= \"b\"\nc ::= a", "left-recursive"},
      {"root ::= other", "rule 'other' must be defined"},
      {"a ::= \"x\"", "a rule 'root'"},
      {"root ::= \"a\"\nroot ::= \"b\"", "must be defined once"},
      {"root ::= \"a", "must be closed"},
      {"root ::= (\"a\"", "must be closed"},
      {"root ::= [a", "must be closed"},
      {"root = \"a\"", "must begin with a name"},
      {"root ::= \"a\" )", "')' must not stand here"},
      {"root ::= <tool>", "'<' must not stand here"},
      {"root ::= \"a\"{2,1}", "in order"},
      {"root ::= \"\\q\"", "'\\q'"},
      {"root ::= \"a\" root", "must allow a finite text"},
      {"", "a rule 'root'"},
  };
  for (const auto& [source, part] : wrong) {
    try {
      grammar_of_gbnf(source);
      ADD_FAILURE() << source;
    } catch (const UsageError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << source << "\n"
          << error.what();
    }
  }
}

TEST(GrammarGbnf, ReadsWhatLlamaCppReads) {
  const auto grammar = grammar_of_gbnf(R"(
# JSON, as in llama.cpp's examples
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)");
  EXPECT_TRUE(accepts(grammar, "{\"a\": [1, -2.5e3, \"x\\u00e9\"], \"b\":{}}"));
  EXPECT_FALSE(accepts(grammar, "{\"a\": [1,]}"));
  EXPECT_FALSE(accepts(grammar, "[]"));
  EXPECT_TRUE(
      accepts(grammar_of_gbnf("root ::= a-b .\na-b ::= \"\\u00e9\""), "é😀")
  );
}

}  // namespace
}  // namespace hearth::text::grammar
