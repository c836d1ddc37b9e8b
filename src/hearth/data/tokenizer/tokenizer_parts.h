#pragma once
// What a loader fills and Tokenizer runs.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/data/tokenizer/added_tokens.h"
#include "hearth/data/tokenizer/decoder.h"
#include "hearth/data/tokenizer/model.h"
#include "hearth/data/tokenizer/normalizer.h"
#include "hearth/data/tokenizer/pre_tokenizer.h"
#include "hearth/data/tokenizer/vocabulary.h"

namespace hearth::data {

struct Truncation {
  std::size_t length = 0;
  bool left = false;
};

struct Padding {
  std::size_t length = 0;  // 0: to the text's own length
  std::size_t multiple = 0;
  std::int32_t id = 0;
  bool left = false;
};

struct TokenizerParts {
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
  std::optional<std::int32_t> bos, eos, pad, unk;
};

// Each throws FormatError that names `name` and the place.
TokenizerParts read_tokenizer_json(
    std::string_view text,
    const std::string& name
);
TokenizerParts read_sentencepiece(
    std::string_view bytes,
    const std::string& name
);
TokenizerParts read_gguf_tokenizer(const std::string& path);

// Special tokens and BOS/EOS habits from tokenizer_config.json in the folder,
// where there is one.
void read_tokenizer_config(const std::string& folder, TokenizerParts& parts);

}  // namespace hearth::data
