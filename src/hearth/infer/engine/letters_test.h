#pragma once
// A tokenizer of 32 tokens, the letters and a few marks, for tests of masks
// over the runner that is arithmetic.
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::infer {

// Ids 0 to 25 are a to z, 26 to 31 are . , ! ? and two ends.
inline std::shared_ptr<const text::Tokenizer> letters() {
  Json words = Json::object();
  for (int i = 0; i < 26; ++i)
    words[std::string(1, static_cast<char>('a' + i))] = i;
  const char* others[] = {".", ",", "!", "?", "<stop>", "<end>"};
  Json added = Json::array();
  for (int i = 0; i < 6; ++i) {
    words[others[i]] = 26 + i;
    if (i >= 4) {
      added.push_back(
          {{"id", 26 + i}, {"content", others[i]}, {"special", true}}
      );
    }
  }
  const Json file = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder", {{"type", "Fuse"}}},
      {"model", {{"type", "BPE"}, {"vocab", words}, {"merges", Json::array()}}}
  };
  return text::Tokenizer::from_json(to_json_line(file), "letters");
}

// Its tokens as grammars want them, of which <end> ends a text; made once,
// since what a grammar knows is known of them.
inline std::shared_ptr<const text::GrammarVocabulary> letter_words() {
  static const auto made = [] {
    const auto tokenizer = letters();
    std::vector<std::string> bytes(32);
    for (std::int32_t i = 0; i < 30; ++i) {
      bytes[static_cast<std::size_t>(i)] = tokenizer->token_bytes(i);
    }
    return text::grammar_vocabulary(bytes, {31});
  }();
  return made;
}

}  // namespace hearth::infer
