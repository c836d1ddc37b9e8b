#pragma once
// The steps that turn token strings back into text.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::data {

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

// From the "decoder" value of a tokenizer.json; nullptr for null. Throws
// FormatError that names an unknown type.
std::unique_ptr<Decoder> make_decoder(const Json& json);
std::unique_ptr<Decoder> make_byte_level_decoder();
// '▁' to space, <0xNN> to bytes, joined, one leading space off.
std::unique_ptr<Decoder> make_sentencepiece_decoder(bool strip_space);

}  // namespace hearth::data
