#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/serve/api_error.h"
#include "hearth/serve/generation_request.h"

namespace hearth::serve {
namespace {

// A text, or a list of parts that are all text.
std::string text_of_content(const Json& value, const std::string& where) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) {
    throw ApiError(
        400, fmt::format("'{}' must be text or a list of text parts", where),
        where
    );
  }
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    Fields part(value[i], fmt::format("{}[{}]", where, i));
    const std::string type = part.need_text("type");
    if (type != "text") {
      part.fail("type", fmt::format("must be text, got {}", shown(Json(type))));
    }
    out += part.need_text("text");
    part.finish();
  }
  return out;
}

// Templates read arguments as an object; clients send its text.
Json arguments_of(Fields& fields) {
  const std::string text = fields.need_text("arguments");
  Json value;
  try {
    value = text.empty() ? Json::object() : parse_request_json(text);
  } catch (const ApiError&) {
    fields.fail("arguments", "must be the text of a JSON object");
  }
  return value;
}

Json tool_calls_of(const Json& list, const std::string& where) {
  if (!list.is_array()) {
    throw ApiError(400, fmt::format("'{}' must be a list", where), where);
  }
  Json out = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    Fields call(list[i], fmt::format("{}[{}]", where, i));
    Json made = {{"id", call.need_text("id")}, {"type", "function"}};
    call.only("type", "function", "only functions can be called");
    Fields function(call.need("function"), call.name_of("function"));
    const std::string name = function.need_text("name");
    made["function"] = {{"name", name}, {"arguments", arguments_of(function)}};
    function.finish();
    call.finish();
    out.push_back(std::move(made));
  }
  return out;
}

std::string role_of(Fields& fields) {
  std::string role = fields.need_text("role");
  // What instructs is "system" in every template there is.
  if (role == "developer") return "system";
  for (const char* known : {"system", "user", "assistant", "tool"}) {
    if (role == known) return role;
  }
  fields.fail(
      "role", fmt::format(
                  "must be system, developer, user, assistant or tool, got {}",
                  shown(Json(role))
              )
  );
}

Json message_of(const Json& value, const std::string& where) {
  Fields fields(value, where);
  Json out = {{"role", role_of(fields)}};
  const Json* content = fields.find("content");
  const Json* calls = nullptr;
  if (out["role"] == "assistant") {
    calls = fields.find("tool_calls");
    if (calls != nullptr && calls->is_array() && calls->empty()) {
      calls = nullptr;
    }
    fields.only("refusal", nullptr, "no message here is a refusal");
    fields.only("audio", nullptr, "there is no audio");
    fields.only("function_call", nullptr, "use tool_calls");
    if (const auto thought = fields.text("reasoning_content")) {
      out["reasoning_content"] = *thought;
    }
  }
  if (content == nullptr && calls == nullptr) {
    fields.fail("content", "is missing");
  }
  out["content"] = content == nullptr
                       ? std::string()
                       : text_of_content(*content, fields.name_of("content"));
  if (calls != nullptr) {
    out["tool_calls"] = tool_calls_of(*calls, fields.name_of("tool_calls"));
  }
  if (out["role"] == "tool") {
    out["tool_call_id"] = fields.need_text("tool_call_id");
  }
  if (const auto name = fields.text("name")) out["name"] = *name;
  fields.finish();
  return out;
}

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

void read_tool_choice(Fields& fields, ChatRequest& out) {
  out.tool_choice =
      out.tools.is_null() ? ToolChoice::none : ToolChoice::automatic;
  const Json* value = fields.find("tool_choice");
  if (value == nullptr) return;
  if (*value == "none") {
    out.tool_choice = ToolChoice::none;
    return;
  }
  if (out.tools.is_null()) {
    fields.fail("tool_choice", "needs 'tools'");
  }
  if (*value == "auto") return;
  if (*value == "required") {
    out.tool_choice = ToolChoice::required;
    return;
  }
  if (!value->is_object()) {
    fields.fail("tool_choice", "must be none, auto, required or a function");
  }
  Fields inner(*value, "tool_choice");
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

void read_tool_fields(Fields& fields, ChatRequest& out) {
  if (const Json* tools = fields.find("tools")) out.tools = read_tools(*tools);
  read_tool_choice(fields, out);
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
  if (top && !asked) {
    fields.fail("top_logprobs", "needs 'logprobs' to be true");
  }
  if (asked) out.log_probs = static_cast<int>(top.value_or(0));
}

void read_max_tokens(
    Fields& fields,
    const RequestLimits& limits,
    ChatRequest& out
) {
  const auto older = fields.integer("max_tokens", 1, limits.max_tokens);
  const auto newer =
      fields.integer("max_completion_tokens", 1, limits.max_tokens);
  if (older && newer && *older != *newer) {
    fields.fail("max_tokens", "and 'max_completion_tokens' disagree");
  }
  if (older || newer)
    out.max_tokens = static_cast<int>(*(newer ? newer : older));
}

}  // namespace

Json read_messages(const Json& list) {
  if (!list.is_array() || list.empty()) {
    throw ApiError(
        400, "'messages' must be a list of at least one message", "messages"
    );
  }
  Json out = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    out.push_back(message_of(list[i], fmt::format("messages[{}]", i)));
  }
  return out;
}

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

ChatRequest parse_chat_request(
    std::string_view body,
    const RequestLimits& limits
) {
  const Json document = parse_request_json(body);
  Fields fields(document, "");
  ChatRequest out;
  read_common(fields, limits, out);
  out.messages = read_messages(fields.need("messages"));
  read_tool_fields(fields, out);
  read_chat_log_probs(fields, limits, out);
  read_max_tokens(fields, limits, out);
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
  if (out.format.kind != FormatRequest::Kind::text &&
      out.tool_choice != ToolChoice::none) {
    throw ApiError(
        400,
        "'response_format' leaves no room for a tool call: use one of them, "
        "or set 'tool_choice' to none",
        "response_format"
    );
  }
  return out;
}

}  // namespace hearth::serve
