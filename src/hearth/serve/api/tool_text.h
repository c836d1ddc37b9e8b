#pragma once
// Messages put another way, where a template knows no tools: what is on offer,
// calls and results become text. Calls are written in Hermes' form, which
// infer/tools/tool_calls.h reads back.
#include "hearth/base/json.h"
#include "hearth/infer/tools/tool_calls.h"

namespace hearth::serve {

inline constexpr infer::ToolForm kPlainToolForm = infer::ToolForm::hermes;

// The functions and how to call them, in the system message.
void add_tools_as_text(Json& messages, const Json& tools);
// Calls in the text of their messages, results as the user's messages. False
// where there was neither.
bool write_calls_as_text(Json& messages);

}  // namespace hearth::serve
