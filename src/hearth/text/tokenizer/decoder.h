#pragma once
// The steps that turn token strings back into text.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::text {

class Decoder;

// A decoder that comes to this: each token by itself, runs of <0xNN> as bytes,
// all of it joined, then steps on the whole text. So what the tokens become can
// be kept in a table.
struct JoiningDecoder {
  std::vector<const Decoder*> each, whole;
  bool byte_fallback = false;
};

class Decoder {
 public:
  enum class Kind { kEachToken, kByteFallback, kFuse, kOther };

  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
  virtual Kind kind() const { return Kind::kOther; }
  // What it comes to, where it does; refers to parts of this decoder.
  virtual std::optional<JoiningDecoder> joining() const { return {}; }
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

}  // namespace hearth::text
