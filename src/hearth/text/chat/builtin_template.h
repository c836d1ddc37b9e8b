#pragma once
// Chat templates that come with Hearth, for a model that starts from nothing.
#include <optional>
#include <string>
#include <string_view>

namespace hearth::text {

// "chatml": <|im_start|>role ... <|im_end|>, tools in the system turn, calls
// as <tool_call>JSON</tool_call>. Nothing for another name.
std::optional<std::string_view> builtin_template(std::string_view name);

// The template as a file of the user's cache folder, written when it is not
// there, for whatever wants a path.
std::string builtin_template_file(std::string_view name);

}  // namespace hearth::text
