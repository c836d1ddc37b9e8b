#pragma once
// A model with its text side: tokenizer, chat templates, the ids that end a
// text. What does not fit together is refused before weights are read.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/models/load.h"
#include "hearth/text/chat/prompt_ids.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::infer {

struct TextModel {
  models::LoadedModel model;
  std::string path;
  std::string text_path;  // where tokenizer and templates are looked for
  // Null where the model comes without one.
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplates> templates;
  // From generation_config.json, else config.json; and the tokenizer's EOS.
  std::vector<std::int32_t> stop_ids;

  // How long its parts took to load.
  struct Timing {
    double open_ms = 0, text_ms = 0, weights_ms = 0;
  };
  Timing timing;

  // Throws UsageError that says what is missing and which flags help.
  const text::Tokenizer& need_tokenizer() const;
  const text::ChatTemplates& need_template() const;

  // What the tokenizer puts before a text, and the text. Throws UsageError
  // when that is nothing at all.
  std::vector<std::int32_t> raw_prompt(std::string_view text) const;
  // Messages through the model's chat template, which writes special tokens
  // itself, up to where the assistant begins.
  // `tools`, where there are some, are what the template offers it. Throws
  // text::UnreadMessage.
  std::vector<std::int32_t> chat_prompt(
      const Json& messages,
      const Json& tools = {}
  ) const;
};

// Called when all but the weights is there: what it throws about a prompt or an
// option costs nobody the wait for them.
using TextReady =
    std::function<void(const TextModel&, const models::DecoderConfig&)>;

// tokenizer: a path, or empty for the model's own. Throws FormatError when the
// tokenizer has more tokens than the model has embeddings.
TextModel load_text_model(
    const std::string& path,
    const std::string& tokenizer = {},
    const models::LoadOptions& options = {},
    const TextReady& ready = {}
);

// All but the weights; text_path holds the tokenizer.
TextModel text_side(
    const io::ModelSource& source,
    const std::string& path,
    const std::string& text_path,
    const TextReady& ready = {}
);

}  // namespace hearth::infer
