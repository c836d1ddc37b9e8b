// One tool call from its JSON or its header.
#include <utility>

#include "hearth/base/ascii.h"
#include "hearth/base/error.h"
#include "hearth/infer/tools/tool_call_parse_impl.h"

namespace hearth::infer {
namespace {

std::optional<Json> read(std::string_view text) {
  try {
    return parse_json(text, "tool call");
  } catch (const FormatError&) {
    return std::nullopt;  // a broken call is text, not an error
  }
}

// Some models write the arguments as a string that holds JSON.
std::optional<std::string> arguments_text(const Json& value) {
  if (value.is_object()) return to_json_line(value);
  if (!value.is_string()) return std::nullopt;
  const auto inner = read(value.get<std::string>());
  if (!inner || !inner->is_object()) return std::nullopt;
  return to_json_line(*inner);
}

std::optional<ParsedCall> call_of(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto wrapped = object.find("function");
  if (wrapped != object.end() && wrapped->is_object()) return call_of(*wrapped);
  ParsedCall made;
  const auto name = wrapped != object.end() ? wrapped : object.find("name");
  if (name == object.end() || !name->is_string()) return std::nullopt;
  made.call.name = name->get<std::string>();
  if (made.call.name.empty()) return std::nullopt;
  made.call.arguments = "{}";
  for (const char* key : {"arguments", "parameters"}) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    const auto text = arguments_text(*found);
    if (!text) return std::nullopt;
    made.call.arguments = *text;
    made.given = true;
    break;
  }
  const auto id = object.find("id");
  if (id != object.end() && id->is_string()) {
    made.call.id = id->get<std::string>();
  }
  return made;
}

}  // namespace

std::optional<ParsedCall> parse_tool_call(std::string_view object) {
  const auto value = read(object);
  return value ? call_of(*value) : std::nullopt;
}

std::vector<ToolCall> parse_tool_calls(std::string_view list) {
  const auto value = read(list);
  std::vector<ToolCall> calls;
  if (!value || !value->is_array()) return calls;
  for (const Json& one : *value) {
    const auto call = call_of(one);
    if (!call) return {};
    calls.push_back(call->call);
  }
  return calls;
}

std::optional<ToolCall> parse_named_call(
    std::string_view head,
    std::string_view arguments
) {
  constexpr std::string_view kArguments = "[ARGS]", kId = "[CALL_ID]";
  head = trimmed(head);
  if (head.ends_with(kArguments)) head.remove_suffix(kArguments.size());
  ToolCall call;
  const auto id = head.find(kId);
  if (id != std::string_view::npos) {
    call.id = trimmed(head.substr(id + kId.size()));
    head = head.substr(0, id);
  }
  call.name = trimmed(head);
  const auto value = read(arguments);
  const bool odd = call.name.find_first_of(" []") != std::string::npos;
  if (call.name.empty() || odd || !value || !value->is_object()) {
    return std::nullopt;
  }
  call.arguments = to_json_line(*value);
  return call;
}

}  // namespace hearth::infer
