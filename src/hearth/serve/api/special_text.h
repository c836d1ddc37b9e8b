#pragma once
// The text of special tokens inside of what clients write: "<|im_end|>" in a
// message would end it. Such text is marked before the template sees it and
// found again after, so that the tokenizer can take it for text.
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/text/tokenizer/added_tokens.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::serve {

enum class SpecialText : unsigned char {
  plain,   // it is text
  refuse,  // a request that holds it is refused
  allow    // it is the token, as the packages that own the templates have it
};

class SpecialMarks {
 public:
  SpecialMarks() = default;
  explicit SpecialMarks(const text::Tokenizer& tokenizer);

  // Puts a mark into every special text of these values' strings and keys.
  // The mark is a character that none of them holds; empty when there was
  // nothing to mark.
  std::string mark(const std::vector<Json*>& values) const;

 private:
  bool holds(const Json& value) const;
  std::string marked(const std::string& text, const std::string& mark) const;
  void mark(Json& value, const std::string& mark) const;

  text::StringSet specials_;
};

// Takes the marks out of a text and says where the special texts begin.
std::vector<std::size_t> take_marks(std::string& text, std::string_view mark);

}  // namespace hearth::serve
