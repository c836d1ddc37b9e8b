#pragma once
// Byte-pair encoding: the piece starts as one symbol a byte (byte-level) or a
// character, and the adjacent pair of lowest rank merges, leftmost first,
// until none can.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/tokenizer/model.h"
#include "hearth/text/tokenizer/pair_table.h"
#include "hearth/text/tokenizer/vocabulary.h"

namespace hearth::text {

struct BpeOptions {
  // Pieces are raw bytes; tokens are spelled in the byte-level alphabet.
  bool byte_level = false;
  std::int32_t unknown = -1;  // id, -1: unknown characters vanish
  bool fuse_unknown = false;
  bool byte_fallback = false;  // unknown characters become <0xNN> tokens
  bool ignore_merges = false;  // a piece that is a token is that token
  std::string continuing_prefix, end_suffix;
};

class Bpe final : public Model {
 public:
  // The vocabulary must outlive the model.
  Bpe(const Vocabulary& vocabulary, PairTable merges, BpeOptions options);

  std::string_view kind() const override { return "BPE"; }
  void encode(
      std::string_view piece,
      std::size_t after,
      ModelScratch& scratch,
      std::vector<std::int32_t>& out
  ) const override;
  const PairTable& merges() const { return merges_; }

 private:
  void encode_word(
      const char* word,
      std::size_t size,
      std::size_t readable,
      ModelScratch& scratch,
      std::vector<std::int32_t>& out
  ) const;
  void merge_word(
      std::string_view word,
      ModelScratch& scratch,
      std::vector<std::int32_t>& out
  ) const;
  std::int32_t whole_token(std::string_view word, ModelScratch& scratch) const;
  void byte_symbols(std::string_view word, ModelScratch& scratch) const;
  void character_symbols(std::string_view word, ModelScratch& scratch) const;
  bool append_fallback(
      std::string_view character,
      std::vector<std::int32_t>& symbols
  ) const;
  void find_cuts();
  bool cuts_before(std::string_view piece, std::size_t at) const;

  const Vocabulary& vocabulary_;
  PairTable merges_;
  BpeOptions options_;
  std::array<std::int32_t, 256> byte_ids_;     // of each byte, or <0xNN>
  std::array<std::int32_t, 128> ascii_ids_{};  // of one-character tokens
  // SentencePiece-style models see a whole text as one word. Where no token
  // holds a '▁' after another character, the text can be cut there with the
  // same result; `glue_` holds the few characters that a '▁' does follow.
  bool cut_words_ = false;
  std::vector<std::string> glue_;
};

// Merges symbols in place until none can. Exposed for its tests.
void merge_symbols(const PairTable& merges, ModelScratch& scratch);

}  // namespace hearth::text
