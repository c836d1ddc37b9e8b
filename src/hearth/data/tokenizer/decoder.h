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
// The byte that a token such as "<0x0A>" stands for, or -1.
int fallback_byte(std::string_view token);
// As SentencePiece decodes: '▁' to space, <0xNN> to bytes, the unknown piece to
// a sign for it, the space that encoding put in front off again.
struct SentencePieceDecoding {
  std::string unknown;     // spelling of the unknown piece
  std::string surface;     // what it decodes to
  bool strip_one = false;  // encoding put a space in front
  bool strip_all = false;  // encoding squeezes spaces
};
std::unique_ptr<Decoder> make_sentencepiece_decoder(
    SentencePieceDecoding settings
);

}  // namespace hearth::data
