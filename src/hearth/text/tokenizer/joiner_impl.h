#pragma once
// Decoding by a table, for decoders that come to joining what each token is by
// itself (SentencePiece-style tokenizer.json files).
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/text/tokenizer/tokenizer_parts.h"

namespace hearth::text {

class Joiner {
 public:
  Joiner(const TokenizerParts& parts, JoiningDecoder decoder)
      : parts_(parts), decoder_(std::move(decoder)) {}
  // Nothing when the table would be unreasonably large, which a hostile file
  // can ask for; the steps one by one will do then.
  std::optional<std::string> decode(
      std::span<const std::int32_t> ids,
      bool skip
  ) const;

 private:
  struct Entry {
    std::uint32_t begin = 0, size = 0;
    std::int16_t byte = -1;  // of a <0xNN> token
    bool absent = false, special = false;
  };
  const TokenizerParts& parts_;
  JoiningDecoder decoder_;
  // Made at the first decoding: many users of a tokenizer only encode.
  mutable std::once_flag once_;
  mutable std::string bytes_;
  mutable std::vector<Entry> entries_;
  mutable bool too_large_ = false;

  void fill() const;
};

// nullptr when the decoder is of another kind. The parts must outlive it.
std::unique_ptr<const Joiner> make_joiner(const TokenizerParts& parts);

}  // namespace hearth::text
