#pragma once
// A small vocabulary for tests, a generator of texts, and comparisons of masks.
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hearth/text/grammar/grammar.h"

namespace hearth::text::grammar {

// Every byte, pieces of JSON and of words, parts of characters; then a special
// token without bytes and one that stops.
struct TestVocabulary {
  std::vector<std::string> bytes;
  std::int32_t special = 0, stop = 0;
  std::shared_ptr<const GrammarVocabulary> made;

  TestVocabulary() {
    for (int i = 0; i < 256; ++i) bytes.emplace_back(1, static_cast<char>(i));
    for (const char* piece :
         {"{\"",        "\":",       "\": ",     "\",",
          "\", \"",     "\"}",       "}}",       "]}",
          "],",         "[[",        "[]",       "{}",
          "true",       "false",     "null",     " \"",
          ", ",         ": ",        "\"name\"", "name",
          "ab",         "abc",       "aa",       "bb",
          "ba",         "aaa",       "the",      " the",
          "12",         "123",       "0.",       "-1",
          "1e",         "e+",        "\\n",      "\\u00",
          "\xC3\xA9",   "\xC3\xA9t", "\xE2\x82", "\x82\xAC",
          "\x82\xAC\"", "\xF0\x9F",  "\x98\x80", "\xF0\x9F\x98\x80",
          "\n  ",       "    ",      "a\"",      "a\",",
          "\"a",        "\"a\"",     "(",        "((",
          "))",         "()",        "x+",       "+x",
          "ab\"]"}) {
      bytes.emplace_back(piece);
    }
    special = static_cast<std::int32_t>(bytes.size());
    bytes.emplace_back();
    stop = static_cast<std::int32_t>(bytes.size());
    bytes.emplace_back("<|end|>");
    made = grammar_vocabulary(bytes, {stop});
  }

  std::vector<std::int32_t> allowed(GrammarState& state) const {
    std::vector<float> logits(bytes.size() + 3, 0.0F);  // padded, as heads are
    state.mask(logits);
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (!std::isinf(logits[i])) ids.push_back(static_cast<std::int32_t>(i));
    }
    return ids;
  }

  const std::string& text_of(std::int32_t id) const {
    return bytes.at(static_cast<std::size_t>(id));
  }

  // A finished text by random choice; empty optional-like flag `ended` when
  // max_tokens did not suffice.
  std::string random_text(
      const std::shared_ptr<const Grammar>& grammar,
      std::mt19937& random,
      int max_tokens,
      bool& ended
  ) const {
    GrammarState state(grammar, made);
    std::string text;
    for (int i = 0; i < max_tokens; ++i) {
      const auto ids = allowed(state);
      const std::int32_t id = ids.at(random() % ids.size());
      state.accept(id);
      if (id == stop) {
        ended = true;
        return text;
      }
      text += text_of(id);
    }
    ended = false;
    return text;
  }
};

}  // namespace hearth::text::grammar
