#pragma once
// Text to token ids and back. Reads Hugging Face's tokenizer.json,
// SentencePiece's tokenizer.model and the vocabulary in a GGUF file, and gives
// the ids that their own libraries give.
//
//   auto tokenizer = Tokenizer::load("model/");
//   std::vector<std::int32_t> ids = tokenizer->encode("Hello");
//   std::string text = tokenizer->decode(ids);
//
// A tokenizer does not change once loaded and may be used by several threads
// at once.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text {

struct TokenizerParts;
struct TokenizerWorkspace;
class Joiner;

struct EncodeOptions {
  // Add what the file adds around a text: BOS, EOS.
  bool add_special = true;
  // Take the text of a special token in the input for that token.
  bool parse_special = true;
  // But not where it begins at one of these bytes, in order: there it is text.
  // A special token that the file looks for in normalised text is not held
  // back.
  std::span<const std::size_t> plain_at = {};
  // Follow the truncation and padding blocks of the file. Off, because many
  // files carry those of the last training run.
  bool truncate = false;
  bool pad = false;
};

struct TokenizerLimits {
  std::size_t truncate_to = 0;  // 0: the file truncates nothing
  bool truncate_left = false;
  std::size_t pad_to = 0;  // 0: the file pads nothing
};

class Tokenizer {
 public:
  // A tokenizer.json, tokenizer.model or .gguf file, or a folder that holds
  // one. Throws FormatError in one line that names file and place.
  static std::shared_ptr<const Tokenizer> load(const std::string& path);
  // The same from bytes; name stands for them in errors.
  static std::shared_ptr<const Tokenizer> from_json(
      std::string_view text,
      const std::string& name
  );
  static std::shared_ptr<const Tokenizer> from_sentencepiece(
      std::string_view bytes,
      const std::string& name
  );
  explicit Tokenizer(TokenizerParts parts);
  ~Tokenizer();

  // Bytes that are not UTF-8 are taken as U+FFFD.
  std::vector<std::int32_t> encode(
      std::string_view text,
      const EncodeOptions& options = {}
  ) const;
  // Appends the same ids to out.
  void encode(
      std::string_view text,
      std::vector<std::int32_t>& out,
      const EncodeOptions& options = {}
  ) const;
  // Ids that name no token are passed over.
  std::string decode(
      std::span<const std::int32_t> ids,
      bool skip_special = false
  ) const;

  // Distinct tokens, added ones counted, and one more than the highest id,
  // which is what an embedding needs.
  std::size_t vocab_size() const;
  std::size_t id_limit() const;
  std::optional<std::int32_t> token_to_id(std::string_view token) const;
  // As the file spells it; nothing for an id that names no token.
  std::optional<std::string> id_to_token(std::int32_t id) const;
  // The bytes a token stands for inside a text (no step that depends on its
  // neighbours is applied); empty for special tokens.
  std::string token_bytes(std::int32_t id) const;
  bool is_special(std::int32_t id) const;
  // True when a text decodes to the bytes of its ids one after the other;
  // then decoded_bytes() gives those of one id.
  bool decodes_bytes() const;
  std::string decoded_bytes(std::int32_t id, bool skip_special) const;

  // From the file, or tokenizer_config.json beside it.
  std::optional<std::int32_t> bos_id() const;
  std::optional<std::int32_t> eos_id() const;
  std::optional<std::int32_t> pad_id() const;
  std::optional<std::int32_t> unk_id() const;
  TokenizerLimits limits() const;

  std::string_view model_kind() const;  // "BPE", "Unigram"
  std::string_view format() const;      // "tokenizer.json", ...
  bool is_byte_level() const;
  std::vector<std::int32_t> special_ids() const;
  // What the file's post-processor puts before and after a text.
  std::vector<std::int32_t> prefix_ids() const;
  std::vector<std::int32_t> suffix_ids() const;

  // Forgets what encoding has remembered of earlier texts; for measurements.
  void clear_cache() const;

 private:
  void encode_plain(
      std::string_view text,
      const EncodeOptions& options,
      TokenizerWorkspace& workspace,
      std::vector<std::int32_t>& out
  ) const;
  bool decode_bytes(
      std::span<const std::int32_t> ids,
      bool skip,
      std::string& out
  ) const;

  struct Pool;
  std::unique_ptr<const TokenizerParts> parts_;
  std::unique_ptr<Pool> pool_;
  std::unique_ptr<const Joiner> joiner_;  // decodes, where it can
};

}  // namespace hearth::text
