#pragma once
// The source of a grammar as characters, read one after the other, with a
// place for errors.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

class SourceText {
 public:
  // `who` begins each message: "[infer.grammar_of_regex]". Throws UsageError
  // for what is not UTF-8 or too long.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 20;
  SourceText(
      std::string_view source,
      std::string who,
      std::size_t max_bytes = kMaxBytes
  );

  bool at_end() const { return at_ >= text_.size(); }
  // 0 at the end.
  char32_t peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0;
  }
  char32_t take() { return text_[at_++]; }
  bool take_if(char32_t expected) {
    if (at_end() || peek() != expected) return false;
    ++at_;
    return true;
  }
  bool take_if(std::u32string_view expected);
  void skip(std::size_t count) { at_ += count; }
  std::size_t at() const { return at_; }
  void go_back(std::size_t at) { at_ = at; }
  std::u32string_view between(std::size_t first, std::size_t last) const {
    return std::u32string_view(text_).substr(first, last - first);
  }

  // Up to `most` hexadecimal digits, at least `least`.
  char32_t hex(int least, int most);
  // A decimal number of at most kMaxCount.
  static constexpr int kMaxCount = 100000;
  int number();

  // UsageError "who what, at character N" (line and column of longer sources).
  [[noreturn]] void fail(std::string_view what) const;
  [[noreturn]] void fail_at(std::size_t at, std::string_view what) const;
  // One character as it is shown in messages.
  static std::string show(char32_t code);

 private:
  std::u32string text_;
  std::string who_;
  std::size_t at_ = 0;
};

// How deep groups may nest in any source.
constexpr int kMaxNesting = 100;

}  // namespace hearth::text::grammar
