#pragma once
// The steps that rewrite text before it is split.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::text {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Rewrites valid UTF-8 in place.
  virtual void apply(std::string& text) const = 0;
};

// From the "normalizer" value of a tokenizer.json; nullptr for null. Throws
// FormatError that names an unknown type.
std::unique_ptr<Normalizer> make_normalizer(const Json& json);

std::unique_ptr<Normalizer> make_sequence(
    std::vector<std::unique_ptr<Normalizer>> steps
);
std::unique_ptr<Normalizer> make_prepend(std::string prefix);
std::unique_ptr<Normalizer> make_replace(std::string from, std::string to);
// A SentencePiece charsmap. By clusters, as Hugging Face applies it, or by
// longest prefix, as SentencePiece does.
std::unique_ptr<Normalizer> make_charsmap(std::string blob, bool clusters);
// SentencePiece's remove_extra_whitespaces: no spaces at the ends, one between
// words.
std::unique_ptr<Normalizer> make_squeeze_spaces();

}  // namespace hearth::text
