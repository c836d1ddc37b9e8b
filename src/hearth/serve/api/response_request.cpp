#include "hearth/serve/api/response_request.h"

#include <algorithm>

#include <fmt/format.h>

namespace hearth::serve {
namespace {

Json or_null(const Json* value) {
  return value == nullptr ? Json() : *value;
}

// A function as a chat has it.
Json tool_of(const Json& value, const std::string& where) {
  Fields tool(value, where);
  const std::string type = tool.need_text("type");
  if (type != "function") {
    tool.fail(
        "type", fmt::format(
                    "must be function, got {}: this server has no tools of "
                    "its own",
                    shown(Json(type))
                )
    );
  }
  Json function = {{"name", tool.need_text("name")}};
  for (const char* key : {"description", "parameters", "strict"}) {
    if (const Json* given = tool.find(key)) function[key] = *given;
  }
  tool.finish();
  return {{"type", "function"}, {"function", std::move(function)}};
}

// A function that is named, as a chat has it.
Json named_of(const Json& value, const std::string& where) {
  Fields function(value, where);
  function.only("type", "function", "only functions can be called");
  Json named = {{"name", function.need_text("name")}};
  function.finish();
  return {{"type", "function"}, {"function", std::move(named)}};
}

// "tool_choice" as a chat has it.
Json choice_of(const Json& given) {
  if (!given.is_object()) return given;
  Fields choice(given, "tool_choice");
  if (choice.text("type") != "allowed_tools") {
    return named_of(given, "tool_choice");
  }
  Json list = choice.need("tools");
  if (!list.is_array()) choice.fail("tools", "must be a list of functions");
  for (Json& one : list) one = named_of(one, "tool_choice.tools");
  Json allowed = {{"mode", choice.need_text("mode")}};
  allowed["tools"] = std::move(list);
  choice.finish();
  return {{"type", "allowed_tools"}, {"allowed_tools", std::move(allowed)}};
}

void read_response_tools(Fields& fields, ResponseRequest& out) {
  const Json* tools = fields.find("tools");
  Json list = Json::array();
  if (tools != nullptr && !tools->is_array()) {
    fields.fail("tools", "must be a list of functions");
  }
  for (std::size_t i = 0; tools != nullptr && i < tools->size(); ++i) {
    list.push_back(tool_of((*tools)[i], fmt::format("tools[{}]", i)));
  }
  out.tools = read_tools(list);
  read_tool_choice(fields, choice_of(or_null(fields.find("tool_choice"))), out);
  out.parallel_tool_calls =
      fields.boolean("parallel_tool_calls").value_or(true);
  out.echo["tools"] = tools == nullptr ? Json::array() : *tools;
  const Json* asked = fields.find("tool_choice");
  out.echo["tool_choice"] = asked == nullptr ? Json("auto") : *asked;
  out.echo["parallel_tool_calls"] = out.parallel_tool_calls;
}

void read_text_options(Fields& fields, bool strict, ResponseRequest& out) {
  out.echo["text"] = {{"format", {{"type", "text"}}}};
  const Json* text = fields.find("text");
  if (text == nullptr) return;
  Fields inner(*text, "text");
  inner.text("verbosity");
  if (const Json* format = inner.find("format")) {
    Fields form(*format, "text.format");
    const std::string type = form.need_text("type");
    if (type == "json_schema") {
      read_schema_format(form, strict, out.format);
    } else if (type == "json_object") {
      out.format.kind = FormatRequest::Kind::json;
    } else if (type != "text") {
      form.fail("type", "must be text, json_object or json_schema");
    }
    form.finish();
    out.echo["text"]["format"] = *format;
  }
  inner.finish();
}

void read_reasoning(Fields& fields, ResponseRequest& out) {
  out.echo["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  const Json* reasoning = fields.find("reasoning");
  if (reasoning == nullptr) return;
  Fields inner(*reasoning, "reasoning");
  read_effort(inner, "effort", out);
  // Summaries of reasoning are not offered, so there is nothing to read.
  inner.pass_over({"summary", "generate_summary"});
  inner.finish();
  out.echo["reasoning"].update(*reasoning);
}

// Reads what is asked for beside the text: log probabilities.
void read_extras(
    Fields& fields,
    const RequestLimits& limits,
    ResponseRequest& out
) {
  // The last event repeats all of them, so their number is bounded.
  constexpr int kMostTop = 20;
  const auto top = fields.integer(
      "top_logprobs", 0, std::min(kMostTop, limits.max_log_probs)
  );
  out.echo["top_logprobs"] = top.value_or(0);
  if (top && *top > 0) out.log_probs = static_cast<int>(*top);
  const Json* include = fields.find("include");
  if (include == nullptr) return;
  if (!include->is_array()) fields.fail("include", "must be a list");
  for (const Json& word : *include) {
    if (word != "message.output_text.logprobs") continue;
    out.log_probs = static_cast<int>(top.value_or(0));
  }
}

// Answers are not kept, whatever "store" says; what needs one that was kept is
// refused.
void read_kept(Fields& fields, ResponseRequest& out) {
  for (const char* key : {"previous_response_id", "conversation"}) {
    fields.only(key, nullptr, "answers are not kept, send the items");
  }
  fields.only("prompt", nullptr, "no prompts are kept here");
  fields.only("background", false, "answers are not kept");
  fields.pass_over({"max_tool_calls"});
  const auto cut = fields.text("truncation").value_or("disabled");
  if (cut != "disabled" && cut != "auto") {
    fields.fail("truncation", "must be disabled or auto");
  }
  out.echo["truncation"] = "disabled";
  out.echo["previous_response_id"] = nullptr;
  out.echo["store"] = false;
  out.echo["background"] = false;
}

void echo_options(Fields& fields, ResponseRequest& out) {
  out.echo["model"] = out.model;
  out.echo["max_output_tokens"] =
      out.asked_tokens ? Json(*out.asked_tokens) : Json();
  out.echo["temperature"] = out.sampling.temperature;
  out.echo["top_p"] = out.sampling.top_p;
  out.echo["metadata"] = Json::object();
  for (const char* key : {"metadata", "user", "service_tier"}) {
    if (const Json* given = fields.find(key)) out.echo[key] = *given;
  }
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
  }));
}

// An answer repeats these, in a stream three times, and no model reads them:
// they have the lengths that OpenAI's own may have.
void check_labels(Fields& fields) {
  constexpr std::size_t kMostPairs = 16, kMostKey = 64, kMostText = 512;
  const auto check = [&](const std::string& key, std::size_t have,
                         std::size_t most, const char* what) {
    if (have <= most) return;
    fields.fail(key, fmt::format("has {} {}, at most {}", have, what, most));
  };
  for (const char* key : {"user", "service_tier"}) {
    check(
        key, characters(fields.text(key).value_or("")), kMostText, "characters"
    );
  }
  const Json* metadata = fields.find("metadata");
  if (metadata == nullptr) return;
  check("metadata", metadata->size(), kMostPairs, "pairs");
  for (const auto& [key, value] : metadata->items()) {
    check("metadata", characters(key), kMostKey, "characters in a key");
    const std::string text =
        value.is_string() ? value.get<std::string>() : to_json_line(value);
    check("metadata", characters(text), kMostText, "characters in a value");
  }
}

// What is long is not repeated: the client has it, and whoever asks for many
// answers and reads none would fill the memory with it.
void shorten_echo(Json& echo) {
  constexpr std::size_t kMostBytes = 32 * 1024;
  const auto is_long = [&](const char* key) {
    return to_json_line(echo[key]).size() > kMostBytes;
  };
  if (is_long("instructions")) echo["instructions"] = nullptr;
  if (is_long("tools")) echo["tools"] = Json::array();
  if (is_long("tool_choice")) echo["tool_choice"] = "auto";
  if (is_long("text")) {
    const Json& type = echo["text"]["format"]["type"];
    echo["text"] = {{"format", {{"type", type}}}};
  }
  if (is_long("reasoning")) {
    echo["reasoning"] = {{"effort", nullptr}, {"summary", nullptr}};
  }
}

}  // namespace

ResponseRequest parse_response_request(
    std::string_view body,
    const RequestLimits& limits
) {
  const Json document = parse_request_json(body);
  Fields fields(document, "");
  ResponseRequest out;
  out.strict = limits.strict;
  out.model = fields.need_text("model");
  const auto instructions = fields.text("instructions");
  const Json said = instructions ? Json(*instructions) : Json();
  out.messages = read_items(fields.need("input"), said);
  out.stream = fields.boolean("stream").value_or(false);
  read_stream_options(fields, out);
  read_sampling(fields, limits.strict, out);
  read_max_tokens(fields, limits, {"max_output_tokens"}, 1, out);
  read_response_tools(fields, out);
  read_text_options(fields, limits.strict, out);
  read_reasoning(fields, out);
  read_extras(fields, limits, out);
  read_kept(fields, out);
  read_labels(fields, limits.strict);
  echo_options(fields, out);
  out.echo["instructions"] = said;
  fields.finish();
  check_labels(fields);
  shorten_echo(out.echo);
  check_format_with_tools(out);
  return out;
}

}  // namespace hearth::serve
