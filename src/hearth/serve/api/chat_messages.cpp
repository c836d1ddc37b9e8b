// The messages of a chat as templates read them. Clients send back whatever
// they once received, from here or from another service: what only says how an
// answer came about is passed over.
#include <fmt/format.h>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/generation_request.h"

namespace hearth::serve {
namespace {

class MessageReader {
 public:
  MessageReader(const Json& value, const std::string& where, bool strict)
      : fields_(value, where), strict_(strict) {}

  Json read();

 private:
  std::string role();
  // The text of a content: a string, or a list of parts that are all text.
  std::string text_of(const Json& value, const std::string& where) const;
  std::string part_text(const Json& value, const std::string& where) const;
  void read_thought(Json& out);
  // Its calls, null where there are none.
  const Json* calls();
  Json call_of(const Json& value, const std::string& where) const;
  Json arguments_of(Fields& function) const;

  Fields fields_;
  bool strict_;
};

std::string MessageReader::part_text(
    const Json& value,
    const std::string& where
) const {
  Fields part(value, where);
  const std::string type = part.need_text("type");
  const bool refusal = !strict_ && type == "refusal";
  if (type != "text" && !refusal) {
    part.fail("type", fmt::format("must be text, got {}", shown(Json(type))));
  }
  if (!strict_) part.pass_over({"annotations", "cache_control"});
  std::string text = part.need_text(refusal ? "refusal" : "text");
  part.finish();
  return text;
}

std::string MessageReader::text_of(
    const Json& value,
    const std::string& where
) const {
  return joined_text(value, where, [this](const Json& part, const auto& at) {
    return part_text(part, at);
  });
}

// Templates read arguments as an object; clients send its text, which a model
// may have got wrong: then it stays a text.
Json MessageReader::arguments_of(Fields& function) const {
  const Json* given = function.find("arguments");
  if (!strict_ && given == nullptr) return Json::object();
  if (!strict_ && given->is_object()) return *given;
  std::string text = function.need_text("arguments");
  if (text.empty()) return Json::object();
  try {
    return parse_request_json(text);
  } catch (const ApiError&) {
    if (strict_) {
      function.fail("arguments", "must be the text of a JSON object");
    }
    return text;
  }
}

Json MessageReader::call_of(const Json& value, const std::string& where) const {
  Fields call(value, where);
  Json made = {{"id", call.need_text("id")}, {"type", "function"}};
  call.only("type", "function", "only functions can be called");
  if (!strict_) {
    call.pass_over({"index", "provider_specific_fields", "extra_content"});
  }
  Fields function(call.need("function"), call.name_of("function"));
  const std::string name = function.need_text("name");
  made["function"] = {{"name", name}, {"arguments", arguments_of(function)}};
  if (!strict_) function.pass_over({"provider_specific_fields"});
  function.finish();
  call.finish();
  return made;
}

std::string MessageReader::role() {
  std::string role = fields_.need_text("role");
  // Templates know no "developer": the role that instructs is "system" in all
  // of them.
  if (role == "developer") return "system";
  for (const char* known : {"system", "user", "assistant", "tool"}) {
    if (role == known) return role;
  }
  fields_.fail(
      "role", fmt::format(
                  "must be system, developer, user, assistant or tool, got {}",
                  shown(Json(role))
              )
  );
}

// Servers have several words for it.
void MessageReader::read_thought(Json& out) {
  auto thought = fields_.text("reasoning_content");
  if (!strict_) {
    const Json* other = fields_.find("reasoning");
    if (!thought && other != nullptr) thought = fields_.text("reasoning");
    fields_.pass_over({"reasoning_details", "thinking_blocks"});
  }
  if (thought) out["reasoning_content"] = *thought;
}

const Json* MessageReader::calls() {
  const Json* list = fields_.find("tool_calls");
  if (list == nullptr) return nullptr;
  if (!list->is_array()) fields_.fail("tool_calls", "must be a list");
  return list->empty() ? nullptr : list;
}

Json MessageReader::read() {
  Json out = {{"role", role()}};
  const bool own = out["role"] == "assistant";
  const Json* content = fields_.find("content");
  const Json* called = own ? calls() : nullptr;
  if (own) {
    fields_.only("audio", nullptr, "there is no audio");
    fields_.only("function_call", nullptr, "use tool_calls");
    read_thought(out);
    if (strict_) {
      fields_.only("refusal", nullptr, "no message here is a refusal");
    } else {
      const Json* refusal = fields_.find("refusal");
      if (content == nullptr) content = refusal;
      fields_.pass_over({"annotations", "provider_specific_fields", "id"});
    }
  }
  if (!strict_) fields_.pass_over({"cache_control"});
  const bool may_be_empty = !strict_ && (own || out["role"] == "tool");
  if (content == nullptr && called == nullptr && !may_be_empty) {
    fields_.fail("content", "is missing");
  }
  out["content"] = content == nullptr
                       ? std::string()
                       : text_of(*content, fields_.name_of("content"));
  if (called != nullptr) {
    Json& list = out["tool_calls"] = Json::array();
    for (std::size_t i = 0; i < called->size(); ++i) {
      const auto name = fmt::format("{}[{}]", fields_.name_of("tool_calls"), i);
      list.push_back(call_of((*called)[i], name));
    }
  }
  if (out["role"] == "tool") {
    out["tool_call_id"] = fields_.need_text("tool_call_id");
  }
  if (const auto name = fields_.text("name")) out["name"] = *name;
  fields_.finish();
  return out;
}

}  // namespace

Json read_messages(const Json& list, bool strict) {
  if (!list.is_array() || list.empty()) {
    throw ApiError(
        400, "'messages' must be a list of at least one message", "messages"
    );
  }
  Json out = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const auto where = fmt::format("messages[{}]", i);
    out.push_back(MessageReader(list[i], where, strict).read());
  }
  return out;
}

}  // namespace hearth::serve
