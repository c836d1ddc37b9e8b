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
// template unless raw, where the model has one. tools: what the template
// offers, or null.
Prompt text_prompt(
    const infer::TextModel& model,
    const std::string& text,
    const std::optional<std::string>& system,
    const Json& tools,
    bool raw
);
// The system message goes before messages that have none of their own.
Prompt messages_prompt(
    const infer::TextModel& model,
    const Json& messages,
    const std::optional<std::string>& system,
    const Json& tools
);
// "1,2,3".
Prompt ids_prompt(const std::string& text);

// The prompt in a file, or on stdin for "-", without the end of its last line.
// Throws UsageError when there is no such file.
std::string read_prompt(const std::string& path);
// The tools in a JSON file, checked; null when it lists none. Throws
// FormatError.
Json read_tools_file(const std::string& path);

}  // namespace hearth::cli
