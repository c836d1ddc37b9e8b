// The items of a response's input as messages that templates read.
#include <fmt/format.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/response_request.h"

namespace hearth::serve {
namespace {

std::string part_text(const Json& value, const std::string& where) {
  Fields part(value, where);
  const std::string type = part.need_text("type");
  const bool refusal = type == "refusal";
  if (type != "input_text" && type != "output_text" && type != "text" &&
      !refusal) {
    part.fail(
        "type", fmt::format(
                    "must be input_text, output_text or refusal, got {}",
                    shown(Json(type))
                )
    );
  }
  part.pass_over({"annotations", "logprobs"});
  std::string text = part.need_text(refusal ? "refusal" : "text");
  part.finish();
  return text;
}

std::string text_of(const Json& value, const std::string& where) {
  return joined_text(value, where, [](const Json& part, const auto& at) {
    return part_text(part, at);
  });
}

class ItemReader {
 public:
  explicit ItemReader(Json& messages) : messages_(messages) {}
  void read(const Json& value, const std::string& where);

 private:
  void message(Fields& item);
  void call(Fields& item);
  void result(Fields& item);

  Json& messages_;
};

void ItemReader::message(Fields& item) {
  std::string role = item.need_text("role");
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant") {
    item.fail(
        "role", fmt::format(
                    "must be system, developer, user or assistant, got {}",
                    shown(Json(role))
                )
    );
  }
  const Json& content = item.need("content");
  messages_.push_back(
      {{"role", role}, {"content", text_of(content, item.name_of("content"))}}
  );
  item.pass_over({"phase"});
}

// The assistant's text and its calls become one message.
void ItemReader::call(Fields& item) {
  const std::string name = item.need_text("name");
  const std::string text = item.need_text("arguments");
  Json arguments;
  try {
    arguments = text.empty() ? Json::object() : parse_request_json(text);
  } catch (const ApiError&) {
    arguments = text;
  }
  Json made = {
      {"id", item.need_text("call_id")},
      {"type", "function"},
      {"function", {{"name", name}, {"arguments", std::move(arguments)}}}
  };
  item.pass_over({"namespace"});
  if (messages_.empty() || messages_.back()["role"] != "assistant") {
    messages_.push_back({{"role", "assistant"}, {"content", ""}});
  }
  Json& calls = messages_.back()["tool_calls"];
  if (calls.is_null()) calls = Json::array();
  calls.push_back(std::move(made));
}

void ItemReader::result(Fields& item) {
  const std::string id = item.need_text("call_id");
  const Json& output = item.need("output");
  messages_.push_back(
      {{"role", "tool"},
       {"content", text_of(output, item.name_of("output"))},
       {"tool_call_id", id}}
  );
}

void ItemReader::read(const Json& value, const std::string& where) {
  Fields item(value, where);
  const std::string type = item.text("type").value_or("message");
  item.pass_over({"id", "status"});
  if (type == "message") {
    message(item);
  } else if (type == "function_call") {
    call(item);
  } else if (type == "function_call_output") {
    result(item);
  } else if (type == "reasoning") {
    // The reasoning behind earlier answers is left out of later prompts.
    return;
  } else if (type == "item_reference") {
    item.fail("type", "is not supported: answers are not kept, send them");
  } else {
    item.fail(
        "type", fmt::format(
                    "must be message, function_call, function_call_output or "
                    "reasoning, got {}",
                    shown(Json(type))
                )
    );
  }
  item.finish();
}

}  // namespace

Json read_items(const Json& input, const Json& instructions) {
  Json out = Json::array();
  if (!instructions.is_null()) {
    out.push_back({{"role", "system"}, {"content", instructions}});
  }
  if (input.is_string()) {
    out.push_back({{"role", "user"}, {"content", input}});
    return out;
  }
  if (!input.is_array() || input.empty()) {
    throw ApiError(
        400, "'input' must be text or a list of at least one item", "input"
    );
  }
  ItemReader reader(out);
  for (std::size_t i = 0; i < input.size(); ++i) {
    reader.read(input[i], fmt::format("input[{}]", i));
  }
  if (out.empty()) {
    throw ApiError(400, "'input' must have a message", "input");
  }
  return out;
}

}  // namespace hearth::serve
