// A request for a chat: its tools, its log-probabilities, and the whole.
#include <set>
#include <string>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/generation_request.h"

namespace hearth::serve {
namespace {

void check_tool(const Json& value, const std::string& where) {
  Fields tool(value, where);
  tool.only("type", "function", "only functions can be called");
  Fields function(tool.need("function"), tool.name_of("function"));
  const std::string name = function.need_text("name");
  if (name.empty() || name.size() > 256) {
    function.fail("name", "must have 1 to 256 bytes");
  }
  function.text("description");
  function.boolean("strict");
  const Json* parameters = function.find("parameters");
  if (parameters != nullptr && !parameters->is_object()) {
    function.fail("parameters", "must be a JSON schema");
  }
  function.finish();
  tool.finish();
}

bool offers(const Json& tools, const std::string& name) {
  for (const Json& tool : tools) {
    if (tool["function"]["name"] == name) return true;
  }
  return false;
}

// One of them is called, or none is: the others are not offered.
void read_allowed_tools(Fields& choice, ChatRequest& out) {
  Fields allowed(choice.need("allowed_tools"), choice.name_of("allowed_tools"));
  choice.finish();
  const std::string mode = allowed.need_text("mode");
  if (mode != "auto" && mode != "required") {
    allowed.fail("mode", "must be auto or required");
  }
  const Json& list = allowed.need("tools");
  if (!list.is_array() || list.empty()) {
    allowed.fail("tools", "must be a list of functions");
  }
  std::set<std::string> names;
  for (const Json& one : list) {
    Fields tool(one, allowed.name_of("tools"));
    tool.only("type", "function", "only functions can be called");
    Fields function(tool.need("function"), tool.name_of("function"));
    const std::string name = function.need_text("name");
    function.finish();
    tool.finish();
    if (!offers(out.tools, name)) {
      allowed.fail("tools", "must name some of 'tools'");
    }
    names.insert(name);
  }
  allowed.finish();
  Json left = Json::array();
  for (const Json& tool : out.tools) {
    if (names.contains(tool["function"]["name"].get<std::string>())) {
      left.push_back(tool);
    }
  }
  out.tools = std::move(left);
  out.tool_choice =
      mode == "auto" ? ToolChoice::automatic : ToolChoice::required;
}

void read_tool_fields(Fields& fields, ChatRequest& out) {
  if (const Json* tools = fields.find("tools")) out.tools = read_tools(*tools);
  const Json* choice = fields.find("tool_choice");
  read_tool_choice(fields, choice == nullptr ? Json() : *choice, out);
  out.parallel_tool_calls =
      fields.boolean("parallel_tool_calls").value_or(true);
}

void read_chat_log_probs(
    Fields& fields,
    const RequestLimits& limits,
    ChatRequest& out
) {
  const bool asked = fields.boolean("logprobs").value_or(false);
  const auto top = fields.integer("top_logprobs", 0, limits.max_log_probs);
  const bool none = !limits.strict && top == 0;
  if (top && !asked && !none) {
    fields.fail("top_logprobs", "needs 'logprobs' to be true");
  }
  if (asked) out.log_probs = static_cast<int>(top.value_or(0));
}

}  // namespace

Json read_tools(const Json& list) {
  constexpr std::size_t kMost = 128;
  if (!list.is_array() || list.size() > kMost) {
    throw ApiError(
        400, fmt::format("'tools' must be a list of at most {} tools", kMost),
        "tools"
    );
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_tool(list[i], fmt::format("tools[{}]", i));
  }
  return list.empty() ? Json() : list;
}

void read_tool_choice(
    const Fields& fields,
    const Json& choice,
    ChatRequest& out
) {
  out.tool_choice =
      out.tools.is_null() ? ToolChoice::none : ToolChoice::automatic;
  if (choice.is_null()) return;
  if (choice == "none") {
    out.tool_choice = ToolChoice::none;
    return;
  }
  const bool automatic = choice == "auto";
  if (out.tools.is_null() && (!automatic || out.strict)) {
    fields.fail("tool_choice", "needs 'tools'");
  }
  if (automatic) return;
  if (choice == "required") {
    out.tool_choice = ToolChoice::required;
    return;
  }
  if (!choice.is_object()) {
    fields.fail("tool_choice", "must be none, auto, required or a function");
  }
  Fields inner(choice, "tool_choice");
  if (inner.text("type") == "allowed_tools") {
    return read_allowed_tools(inner, out);
  }
  inner.only("type", "function", "only functions can be called");
  Fields function(inner.need("function"), "tool_choice.function");
  out.tool_choice = ToolChoice::named;
  out.tool_name = function.need_text("name");
  function.finish();
  inner.finish();
  if (!offers(out.tools, out.tool_name)) {
    fields.fail("tool_choice", "must name one of 'tools'");
  }
}

void read_effort(Fields& fields, const char* key, ChatRequest& out) {
  const auto effort = fields.text(key);
  if (!effort) return;
  for (const char* known :
       {"none", "minimal", "low", "medium", "high", "xhigh", "max"}) {
    if (*effort == known) out.reasoning_effort = *effort;
  }
  if (out.reasoning_effort.empty()) {
    fields.fail(key, "must be none, minimal, low, medium, high, xhigh or max");
  }
}

// Text in a schema's form or a call can both be held to; of a grammar of one's
// own nobody knows where a call would begin.
void check_format_with_tools(const ChatRequest& request) {
  using Kind = FormatRequest::Kind;
  const Kind kind = request.format.kind;
  const bool json = kind == Kind::json || kind == Kind::schema;
  if (kind == Kind::text || request.tool_choice == ToolChoice::none) return;
  if (json && !request.strict) return;
  throw ApiError(
      400,
      "'response_format' leaves no room for a tool call: use one of them, "
      "or set 'tool_choice' to none",
      "response_format"
  );
}

ChatRequest parse_chat_request(
    std::string_view body,
    const RequestLimits& limits
) {
  const Json document = parse_request_json(body);
  Fields fields(document, "");
  ChatRequest out;
  out.strict = limits.strict;
  read_common(fields, limits, out);
  out.messages = read_messages(fields.need("messages"), limits.strict);
  read_tool_fields(fields, out);
  read_chat_log_probs(fields, limits, out);
  read_max_tokens(
      fields, limits, {"max_completion_tokens", "max_tokens"}, 1, out
  );
  if (!limits.strict) read_effort(fields, "reasoning_effort", out);
  out.continue_final_message =
      fields.boolean("continue_final_message").value_or(false);
  if (const Json* variables = fields.find("chat_template_kwargs")) {
    Fields check(*variables, "chat_template_kwargs");
    for (const char* own : {"messages", "tools", "documents"}) {
      if (variables->contains(own)) check.fail(own, "has a place of its own");
    }
    out.template_variables = *variables;
  }
  check_token_ids(fields, out);
  fields.finish();
  check_format_with_tools(out);
  return out;
}

}  // namespace hearth::serve
