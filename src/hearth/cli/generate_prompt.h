#pragma once
// What generate feeds a model: a text, messages or ids, as the flags or a line
// of a batch say.
#include <optional>
#include <string>
#include <vector>

#include "hearth/infer/text_model.h"

namespace hearth::cli {

struct Prompt {
  std::vector<std::int32_t> ids;
  bool chat = false;  // through the model's template
  double tokenizer_ms = 0;
};

// A user's text, after a system message where one is given. Through the
// template unless raw, where the model has one.
Prompt text_prompt(
    const infer::TextModel& model,
    const std::string& text,
    const std::optional<std::string>& system,
    bool raw
);
Prompt messages_prompt(const infer::TextModel& model, const Json& messages);
// "1,2,3".
Prompt ids_prompt(const std::string& text);

}  // namespace hearth::cli
