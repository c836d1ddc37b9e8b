#include "hearth/data/read/dataset_chat.h"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::data {
namespace {

// Other tools' names of roles.
constexpr std::array<std::pair<std::string_view, const char*>, 13> kRoles = {
    {{"human", "user"},
     {"prompter", "user"},
     {"gpt", "assistant"},
     {"chatgpt", "assistant"},
     {"bot", "assistant"},
     {"model", "assistant"},
     {"ai", "assistant"},
     {"developer", "system"},
     {"observation", "tool"},
     {"function_response", "tool"},
     {"tool_response", "tool"},
     {"function_call", "calls"},
     {"tool_call", "calls"}}
};

// JSON inside of a text; null where it is none, or nested too deep.
Json json_in(const std::string& text) try {
  return parse_json(text, "");
} catch (const FormatError&) {
  return nullptr;
}

class ChatReader {
 public:
  ChatReader(const RoleNames& roles, std::string_view field)
      : roles_(roles), field_(field) {}

  Json message(Json given, std::size_t index) {
    if (given.is_string()) {
      return chat_message(
          index % 2 == 0 ? "user" : "assistant", given.get<std::string>()
      );
    }
    if (!given.is_object()) fail("must be an object with a role");
    rename(given, "from", "role");
    rename(given, "value", "content");
    const auto role = given.find("role");
    if (role == given.end() || !role->is_string()) {
      fail("must be an object with a role");
    }
    *role = role_of(role->get<std::string>(), index);
    if (*role == "calls") {
      write_calls(given);
    } else if (const auto content = given.find("content");
               content != given.end()) {
      join_parts(*content);
    } else if (!given.contains("tool_calls") &&
               !given.contains("function_call")) {
      fail(fmt::format("must have a content, message {} has none", index + 1));
    }
    read_calls(given);
    read_weight(given);
    return given;
  }

 private:
  const RoleNames& roles_;
  std::string_view field_;

  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError(fmt::format("each of \"{}\" {}", field_, what));
  }

  static void rename(Json& message, const char* from, const char* to) {
    const auto old = message.find(from);
    if (old == message.end() || message.contains(to)) return;
    Json value = std::move(*old);
    message.erase(from);
    message[to] = std::move(value);
  }

  std::string role_of(const std::string& role, std::size_t index) const {
    const auto named = roles_.find(role);
    if (named != roles_.end()) return named->second;
    for (const char* known :
         {"system", "user", "assistant", "tool", "function", "ipython"}) {
      if (role == known) return role;
    }
    for (const auto& [other, ours] : kRoles) {
      if (role == other) return ours;
    }
    fail(
        fmt::format(
            "must have the role system, user, assistant or tool, message {} "
            "has \"{}\": data.fields={{roles: {{\"{}\": user}}}} says what it "
            "is",
            index + 1, role, role
        )
    );
  }

  // Parts that are all text become the text.
  void join_parts(Json& content) const {
    if (content.is_null() || content.is_string()) return;
    if (!content.is_array()) fail("must have a text as its content");
    std::string text;
    for (const Json& part : content) {
      if (part.is_string()) {
        text += part.get_ref<const std::string&>();
        continue;
      }
      if (!part.is_object() || !part.contains("text") ||
          !part["text"].is_string()) {
        const bool typed = part.is_object() && part.contains("type") &&
                           part["type"].is_string();
        fail(
            fmt::format(
                "must have parts that are text, got {}",
                typed ? part["type"].get<std::string>() : "something else"
            )
        );
      }
      text += part["text"].get_ref<const std::string&>();
    }
    content = std::move(text);
  }

  // A turn whose text is the calls themselves, as JSON: one or a list.
  static void write_calls(Json& message) {
    message["role"] = "assistant";
    const auto content = message.find("content");
    if (content == message.end() || !content->is_string()) return;
    Json calls = json_in(content->get<std::string>());
    if (calls.is_object()) calls = Json::array({std::move(calls)});
    if (!calls.is_array() || calls.empty()) return;
    for (const Json& call : calls) {
      if (!call.is_object() || !call.contains("name")) return;
    }
    *content = "";
    message["tool_calls"] = std::move(calls);
  }

  // Calls are {"type": "function", "function": {name, arguments}}, and the
  // arguments an object, which templates write as JSON.
  void read_calls(Json& message) const {
    if (const auto old = message.find("function_call"); old != message.end()) {
      Json call = std::move(*old);
      message.erase("function_call");
      if (!call.is_null())
        message["tool_calls"] = Json::array({std::move(call)});
    }
    const auto calls = message.find("tool_calls");
    if (calls == message.end()) return;
    if (calls->is_null()) {
      message.erase("tool_calls");
      return;
    }
    if (!calls->is_array()) fail("must have a list as its tool_calls");
    for (Json& call : *calls) {
      if (!call.is_object()) fail("must have objects as its tool_calls");
      if (!call.contains("function")) {
        call = Json{{"type", "function"}, {"function", std::move(call)}};
      }
      Json& function = call["function"];
      if (!function.is_object()) fail("must call a function by its name");
      const auto arguments = function.find("arguments");
      if (arguments == function.end() || !arguments->is_string()) continue;
      Json object = json_in(arguments->get<std::string>());
      if (object.is_object()) *arguments = std::move(object);
    }
  }

  // OpenAI's "weight": 0 is our "train": false.
  static void read_weight(Json& message) {
    const auto weight = message.find("weight");
    if (weight == message.end() || !weight->is_number()) return;
    const bool none = weight->get<double>() == 0;
    message.erase("weight");
    if (none) message["train"] = false;
  }
};

}  // namespace

Json read_chat(Json list, const RoleNames& roles, std::string_view field) {
  if (list.empty()) {
    throw FormatError(fmt::format("\"{}\" must have a message", field));
  }
  ChatReader reader(roles, field);
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = reader.message(std::move(list[i]), i);
  }
  return list;
}

Json read_tools(Json tools, std::string_view field) {
  if (tools.is_string()) {
    const std::string text = tools.get<std::string>();
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) return nullptr;
    tools = json_in(text);
  }
  if (!tools.is_array()) {
    throw FormatError(
        fmt::format("\"{}\" must be a list of functions, or its text", field)
    );
  }
  return tools;
}

Json chat_message(const char* role, std::string content) {
  Json m = Json::object();
  m["role"] = role;
  m["content"] = std::move(content);
  return m;
}

void without_loss(Json& messages) {
  for (Json& m : messages) {
    if (m["role"] == "assistant") m["train"] = false;
  }
}

void add_system(Json& messages, const std::string& system) {
  if (system.empty() || messages[0]["role"] == "system") return;
  messages.insert(messages.begin(), chat_message("system", system));
}

}  // namespace hearth::data
