#pragma once
// Finds the occurrences of a pattern in text, left to right, not overlapping.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/base/function_ref.h"

namespace hearth::text {

using OnMatch = FunctionRef<void(std::size_t begin, std::size_t end)>;

class Matcher {
 public:
  virtual ~Matcher() = default;
  // text is valid UTF-8.
  virtual void find_all(std::string_view text, OnMatch on_match) const = 0;
};

// A pattern in Oniguruma's Ruby syntax, as tokenizer files carry. Well-known
// patterns get a scanner of their own; the others go to PCRE2. Throws
// FormatError when the pattern cannot be read.
std::unique_ptr<Matcher> make_regex_matcher(const std::string& pattern);
// The same, never a scanner: what scanners are tested against.
std::unique_ptr<Matcher> make_general_matcher(const std::string& pattern);
// nullptr when the pattern is not one of the well-known ones.
std::unique_ptr<Matcher> make_scanner(std::string_view pattern);
// Occurrences of a fixed string; an empty one occurs nowhere.
std::unique_ptr<Matcher> make_literal_matcher(std::string literal);

}  // namespace hearth::text
