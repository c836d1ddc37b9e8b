#pragma once
// Parses one tool call, once all of its text is there.
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "hearth/infer/tools/tool_calls.h"

namespace hearth::infer {

struct ParsedCall {
  ToolCall call;
  bool given = false;                         // it has arguments, be they empty
  operator ToolCall() const { return call; }  // NOLINT(*-explicit-*)
};

// {"name": …, "arguments" or "parameters": …}; nothing when it is not that.
std::optional<ParsedCall> parse_tool_call(std::string_view object);
// A list of calls; empty when one of them is not a call.
std::vector<ToolCall> parse_tool_calls(std::string_view list);
// Mistral's newer form: what stands before the object of arguments.
std::optional<ToolCall> parse_named_call(
    std::string_view head,
    std::string_view arguments
);
// name.call(key=value, …) with Python's literals. `size` is its length; 0 with
// no call: more text is needed, unless `last`.
std::optional<ToolCall> parse_python_call(
    std::string_view text,
    bool last,
    std::size_t& size
);

}  // namespace hearth::infer
