#pragma once
// A model with its text side: tokenizer, chat templates, the ids that end a
// text. What does not fit together is refused before weights are read.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/data/chat.h"
#include "hearth/data/tokenizer/tokenizer.h"
#include "hearth/models/load.h"

namespace hearth::infer {

struct TextModel {
  models::LoadedModel model;
  std::string path;
  std::string text_path;  // where tokenizer and templates are looked for
  // Null where the model comes without one.
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::optional<data::ChatTemplates> templates;
  // From generation_config.json, else config.json; and the tokenizer's EOS.
  std::vector<std::int32_t> stop_ids;

  // How long its parts took to load.
  struct Timing {
    double open_ms = 0, text_ms = 0, weights_ms = 0;
  };
  Timing timing;

  // Throws UsageError that says what is missing and which flags help.
  const data::Tokenizer& need_tokenizer() const;

  // What the tokenizer puts before a text, and the text. Throws UsageError
  // when that is nothing at all.
  std::vector<std::int32_t> raw_prompt(std::string_view text) const;
  // Messages through the model's chat template, which writes special tokens
  // itself, up to where the assistant begins.
  std::vector<std::int32_t> chat_prompt(const Json& messages) const;
};

// tokenizer: a path, or empty for the model's own. Throws FormatError when the
// tokenizer has more tokens than the model has embeddings.
TextModel load_text_model(
    const std::string& path,
    const std::string& tokenizer = {},
    const models::LoadOptions& options = {}
);

// The same of a model that is loaded already; text_path holds its tokenizer.
TextModel with_text(
    models::LoadedModel model,
    const std::string& path,
    const std::string& text_path
);

// A number or a list under eos_token_id; none where it is absent.
std::vector<std::int32_t> eos_ids(const Json& config);

}  // namespace hearth::infer
