// Hand-written equals of the patterns that most tokenizers use. Each is chosen
// by its exact text and tested against the general matcher.
#include "hearth/text/tokenizer/known_patterns.h"
#include "hearth/text/tokenizer/matcher.h"
#include "hearth/text/tokenizer/scanner_impl.h"

namespace hearth::text {

namespace scan {
namespace {

std::size_t gpt2(const Text& text, std::size_t i) {
  if (const std::size_t end = contraction(text, i, false); end > i) return end;
  Char c = text.at(i);
  std::size_t start = i;
  if (text.data[i] == ' ') {
    c = text.at(i + 1);
    start = i + 1;
  }
  if (const std::uint8_t kind = c.cls & (kLetter | kNumber | kOther)) {
    return text.run(start + c.size, kind);
  }
  return spaces(text, i, false);
}

std::size_t numbers(const Text& text, std::size_t i, int most) {
  for (int n = 0; n < most; ++n) {
    const Char c = text.at(i);
    if (!(c.cls & kNumber)) break;
    i += c.size;
  }
  return i;
}

// ` ?[^\s\p{L}\p{N}]+[\r\n]*`, with '/' among the newlines when slash.
std::size_t others(const Text& text, std::size_t i, bool slash) {
  const std::size_t start = i + text.is(i, ' ');
  std::size_t end = text.run(start, kOther);
  if (end == start) return i;
  while (text.is(end, '\r') || text.is(end, '\n') ||
         (slash && text.is(end, '/'))) {
    ++end;
  }
  return end;
}

// Llama 3 (three digits at a time) and Qwen 2 (one).
template <int kDigits>
std::size_t llama3(const Text& text, std::size_t i) {
  if (const std::size_t end = contraction(text, i, true); end > i) return end;
  const Char c = text.at(i);
  if (c.cls & kLetter) return text.run(i + c.size, kLetter);
  if (c.cls & kNumber) return numbers(text, i, kDigits);
  if (!(c.cls & kNewline)) {
    const std::size_t end = text.run(i + c.size, kLetter);
    if (end > i + c.size) return end;
  }
  if (const std::size_t end = others(text, i, false); end > i) return end;
  return spaces(text, i, true);
}

// [U]*[L]+|[U]+[L]* from `i`, where U and L overlap, as backtracking finds it:
// the second alternative only counts when the first cannot match.
struct CasedWord {
  std::size_t end = 0;
  bool first = false;
};
CasedWord cased_word(const Text& text, std::size_t i) {
  std::size_t end = i, after_lower = i;
  for (Char c = text.at(end); c.cls & kUpper; c = text.at(end)) {
    end += c.size;
    if (c.cls & kLower) after_lower = end;
  }
  if (text.at(end).cls & kLower) return {text.run(end, kLower), true};
  if (after_lower > i) return {after_lower, true};
  return {end, false};
}

// GPT-4o (contractions end a word, three digits) and Mistral Nemo.
template <bool kContractions, int kDigits>
std::size_t o200k(const Text& text, std::size_t i) {
  const Char c = text.at(i);
  CasedWord word{i, false};
  if (!(c.cls & (kLetter | kNumber | kNewline))) {
    const CasedWord with = cased_word(text, i + c.size);
    const CasedWord without = cased_word(text, i);
    if (with.first) {
      word = with;
    } else if (without.first) {
      word = without;
    } else if (with.end > i + c.size) {
      word = with;
    }
  } else if (c.cls & kLetter) {
    word = cased_word(text, i);
  }
  if (word.end > i) {
    return kContractions ? contraction(text, word.end, true) : word.end;
  }
  if (c.cls & kNumber) return numbers(text, i, kDigits);
  if (const std::size_t end = others(text, i, true); end > i) return end;
  return spaces(text, i, true);
}

std::size_t three_numbers(const Text& text, std::size_t i) {
  return numbers(text, i, 3);
}

std::size_t han_and_kana(const Text& text, std::size_t i) {
  while (i < text.size && static_cast<unsigned char>(text.data[i]) >= 0xE3) {
    const CodePoint c = decode_utf8(text.data + i);
    const bool inside = (c.value >= 0x4E00 && c.value <= 0x9FA5) ||
                        (c.value >= 0x3040 && c.value <= 0x30FF);
    if (!inside) break;
    i += c.size;
  }
  return i;
}

bool is_ascii_letter(const Text& text, std::size_t i) {
  return i < text.size &&
         (kBytes[static_cast<unsigned char>(text.data[i])] & kLetter);
}

std::size_t deepseek(const Text& text, std::size_t i) {
  const Char c = text.at(i);
  constexpr std::uint8_t kWord = kLetter | kUpper | kLower;  // \p{L}\p{M}
  if (c.size == 1 && (c.cls & kSymbol) && is_ascii_letter(text, i + 1)) {
    std::size_t end = i + 1;
    while (is_ascii_letter(text, end)) ++end;
    return end;
  }
  if (!(c.cls & (kLetter | kSymbol | kNewline))) {
    const std::size_t end = text.run(i + c.size, kWord);
    if (end > i + c.size) return end;
  }
  if (c.cls & kWord) return text.run(i + c.size, kWord);
  const std::size_t start = i + text.is(i, ' ');
  if (std::size_t end = text.run(start, kSymbol); end > start) {
    while (text.is(end, '\r') || text.is(end, '\n')) ++end;
    return end;
  }
  return c.cls & kSpace ? spaces(text, i, true) : i;
}

using Step = std::size_t (*)(const Text&, std::size_t);

template <Step step>
class Scanner final : public Matcher {
 public:
  void find_all(std::string_view view, OnMatch on_match) const override {
    const Text text(view);
    for (std::size_t i = 0; i < view.size();) {
      const std::size_t end = step(text, i);
      if (end > i) {
        on_match(i, end);
        i = end;
      } else {
        i += utf8_size(view[i]);
      }
    }
  }
};

using Make = std::unique_ptr<Matcher> (*)();
template <Step step>
std::unique_ptr<Matcher> make() {
  return std::make_unique<Scanner<step>>();
}

struct Known {
  std::string_view pattern;
  Make make;
};

}  // namespace
}  // namespace scan

std::unique_ptr<Matcher> make_scanner(std::string_view pattern) {
  using namespace scan;
  const Known known[] = {
      {kGpt2Pattern, make<gpt2>},
      {kLlama3Pattern, make<llama3<3>>},
      {kQwen2Pattern, make<llama3<1>>},
      {kGpt4oPattern, make<o200k<true, 3>>},
      {kNemoPattern, make<o200k<false, 1>>},
      {kThreeNumbersPattern, make<three_numbers>},
      {kHanAndKanaPattern, make<han_and_kana>},
      {kDeepSeekPattern, make<deepseek>},
  };
  for (const Known& entry : known) {
    if (entry.pattern == pattern) return entry.make();
  }
  return nullptr;
}

}  // namespace hearth::text
