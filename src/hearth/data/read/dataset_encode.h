#pragma once
// Examples become token ids with loss spans. The tokenizer and the chat
// template are seen through two narrow interfaces, so that everything from
// here to the loader is tested without either.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/hash.h"
#include "hearth/base/json.h"
#include "hearth/data/read/dataset_record.h"
#include "hearth/io/token_shard.h"

namespace hearth::data {

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends the ids of a text; special tokens in it are recognised, none is
  // added. Called from several threads at once.
  virtual void encode(
      std::string_view text,
      std::vector<std::int32_t>& out
  ) const = 0;
  // Encodes a whole text, with the byte at which each token begins. Returns
  // false when tokens cannot be located in the text (it was normalised on the
  // way).
  virtual bool encode_placed(
      std::string_view,
      std::vector<std::int32_t>&,
      std::vector<std::size_t>&
  ) const {
    return false;
  }
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;
  // The text of one token, for people.
  virtual std::string token_text(std::int32_t id) const {
    return decode({&id, 1});
  }
  virtual std::uint32_t vocabulary() const = 0;
  virtual std::optional<std::int32_t> bos() const = 0;
  virtual std::optional<std::int32_t> eos() const = 0;
  // Names everything that decides which ids a text gets.
  virtual Hash128 hash() const = 0;
  // The path that the tokenizer was read from.
  virtual std::string path() const { return {}; }
};

struct RenderedChat {
  // The bytes that message `message`, an assistant's, contributes as output.
  struct Turn {
    std::size_t begin = 0, end = 0;
    std::size_t message = 0;
  };
  std::string text;
  std::vector<Turn> turns;  // in order, disjoint
};

class ChatRenderer {
 public:
  virtual ~ChatRenderer() = default;
  // Throws when the template refuses the messages. Called from several threads.
  virtual RenderedChat render(
      const Json& messages,
      const Json& tools
  ) const = 0;
  virtual Hash128 hash() const = 0;
  virtual std::string path() const { return {}; }
  // Whether the template reads this variable or key of a message.
  virtual bool reads(std::string_view) const { return true; }
};

// Which tokens carry loss.
enum class MaskMode {
  kAll,        // every token
  kAssistant,  // every assistant turn; a prompt's completion
  kLast,       // the last assistant turn only
};

struct EncodeSettings {
  MaskMode mask = MaskMode::kAssistant;
  bool add_bos = true;           // where the tokenizer has one
  bool add_eos = true;           // after plain text and completions
  std::uint32_t max_tokens = 0;  // longer documents are cut; 0: never
};

struct EncodedDocument {
  std::vector<std::int32_t> ids;
  std::vector<io::TokenSpan> spans;
  std::uint64_t hash = 0;  // of the record's content
  bool truncated = false;
  bool unread_tools = false;      // which the template does not read
  std::uint64_t trained() const;  // tokens that carry loss
};

class ExampleEncoder {
 public:
  // The renderer may be null: records that need one are refused then.
  ExampleEncoder(
      std::shared_ptr<const TextEncoder> text,
      std::shared_ptr<const ChatRenderer> chat,
      EncodeSettings settings
  );
  // One document, or two for a preference (chosen, then rejected). Throws
  // FormatError that says what is wrong with the record.
  void encode(const Record& record, std::vector<EncodedDocument>& out) const;

  const TextEncoder& text() const { return *text_; }
  const ChatRenderer* chat() const { return chat_.get(); }
  const EncodeSettings& settings() const { return settings_; }

 private:
  std::shared_ptr<const TextEncoder> text_;
  std::shared_ptr<const ChatRenderer> chat_;
  EncodeSettings settings_;

  EncodedDocument plain(std::string_view text) const;
  EncodedDocument completion(
      std::string_view prompt,
      std::string_view completion
  ) const;
  EncodedDocument chat(const Json& messages, const Json& tools) const;
  void encode_parts(const RenderedChat& chat, EncodedDocument& d) const;
  void close(EncodedDocument& document) const;
};

}  // namespace hearth::data
