#pragma once
// Makes a grammar and takes a few tokens of it: masks must be obeyed, and a
// text that has not failed must be able to go on or end.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/text/grammar/grammar.h"

namespace hearth_fuzz {

inline std::shared_ptr<const hearth::text::GrammarVocabulary> vocabulary() {
  static const auto made = [] {
    std::vector<std::string> bytes;
    for (int i = 0; i < 256; ++i) bytes.emplace_back(1, static_cast<char>(i));
    for (const char* piece :
         {"{\"", "\":", "\",", "]}", "aa", "ab", "12", ""}) {
      bytes.emplace_back(piece);
    }
    const auto stop = static_cast<std::int32_t>(bytes.size()) - 1;
    return hearth::text::grammar_vocabulary(bytes, {stop});
  }();
  return made;
}

template <typename Make>
void walk(const Make& make) {
  try {
    const auto grammar = make();
    hearth::text::GrammarState state(grammar, vocabulary());
    std::uint32_t random = 1;
    for (int i = 0; i < 12 && !state.must_end(); ++i) {
      std::vector<float> logits(264);
      state.mask(logits);
      std::vector<std::int32_t> allowed;
      for (std::size_t id = 0; id < logits.size(); ++id) {
        if (!std::isinf(logits[id])) {
          allowed.push_back(static_cast<std::int32_t>(id));
        }
      }
      if (allowed.empty()) std::abort();
      random = random * 1664525U + 1013904223U;
      state.accept(allowed[(random >> 8) % allowed.size()]);
    }
  } catch (const hearth::UsageError&) {
    // Refused with a reason.
  } catch (const hearth::Error& error) {
    // The one thing that shows only while a text is read.
    if (std::string_view(error.what()).find("too ambiguous") ==
        std::string_view::npos) {
      std::abort();
    }
  }
}

}  // namespace hearth_fuzz
