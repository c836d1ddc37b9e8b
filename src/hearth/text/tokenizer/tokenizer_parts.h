#pragma once
// What a loader fills and Tokenizer runs.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/tokenizer/added_tokens.h"
#include "hearth/text/tokenizer/decoder.h"
#include "hearth/text/tokenizer/model.h"
#include "hearth/text/tokenizer/normalizer.h"
#include "hearth/text/tokenizer/pair_table.h"
#include "hearth/text/tokenizer/pre_tokenizer.h"
#include "hearth/text/tokenizer/vocabulary.h"

namespace hearth::text {

struct Truncation {
  std::size_t length = 0;
  bool left = false;
  bool second_only = false;  // of two texts, which are never given here
};

struct Padding {
  std::size_t length = 0;  // 0: to the text's own length
  std::size_t multiple = 0;
  std::int32_t id = 0;
  bool left = false;
};

// What each id decodes to when that depends on no other: the bytes end to end,
// and where each begins, with one more place for the end.
struct DecodedBytes {
  std::string_view bytes;
  std::span<const std::uint32_t> places;
  std::string own_bytes;  // what the two above show, unless it is borrowed
  std::vector<std::uint32_t> own_places;
};

struct TokenizerParts {
  // What tables below may lie in; unmapped last.
  std::shared_ptr<const void> storage;
  std::string format;
  // Models refer to it, so its address does not change.
  std::unique_ptr<Vocabulary> vocabulary = std::make_unique<Vocabulary>();
  std::unique_ptr<Normalizer> normalizer;
  PreTokenizers pre;
  std::unique_ptr<Model> model;
  AddedTokens added;
  std::vector<std::int32_t> prefix, suffix;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  std::unique_ptr<Decoder> decoder;
  bool byte_level_decoder = false;  // the decoder is ByteLevel and no more
  std::unique_ptr<DecodedBytes> decoded;  // byte-level decoders only
  std::optional<std::int32_t> bos, eos, pad, unk;

  // One more than the highest id.
  std::size_t id_limit() const;
  // As decoding sees it.
  std::string_view decoded_token(std::int32_t id) const;
  // Fills `decoded` when the decoder is a byte-level one and it is empty.
  void decode_ahead();
};

// The large tables of a tokenizer.json, made at an earlier reading.
struct ReadyTables {
  Vocabulary::Tables vocabulary;
  std::span<const PairTable::Slot> merges;
};

// Each throws FormatError that names `name` and the place. A BPE file's text
// without vocabulary and merges goes to *rest, where it is given; with `ready`
// the text is such a rest.
TokenizerParts read_tokenizer_json(
    std::string_view text,
    const std::string& name,
    std::string* rest = nullptr,
    const ReadyTables* ready = nullptr
);
TokenizerParts read_sentencepiece(
    std::string_view bytes,
    const std::string& name
);
TokenizerParts read_gguf_tokenizer(const std::string& path);

// Special tokens and BOS/EOS habits from tokenizer_config.json in the folder,
// where there is one.
void read_tokenizer_config(const std::string& folder, TokenizerParts& parts);

}  // namespace hearth::text
