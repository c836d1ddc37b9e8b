#include "hearth/serve/api/tool_text.h"

#include <fmt/format.h>

namespace hearth::serve {
namespace {

std::string text_of(const Json& message) {
  const auto content = message.find("content");
  return content != message.end() && content->is_string()
             ? content->get<std::string>()
             : std::string();
}

void append(std::string& a, const char* between, std::string_view b) {
  if (!a.empty() && !b.empty()) a += between;
  a.append(b);
}

std::string joined(std::string a, const char* between, std::string_view b) {
  append(a, between, b);
  return a;
}

// Arguments that are no object are what the model wrote, word by word.
std::string call_text(const Json& call) {
  const Json& function = call["function"];
  const Json& arguments = function["arguments"];
  return fmt::format(
      "<tool_call>\n{{\"name\": {}, \"arguments\": {}}}\n</tool_call>",
      to_json_line(function["name"]),
      arguments.is_string() ? arguments.get<std::string>()
                            : to_json_line(arguments)
  );
}

std::string result_text(const Json& message) {
  return fmt::format("<tool_response>\n{}\n</tool_response>", text_of(message));
}

bool is_role(const Json& message, const char* role) {
  return message["role"] == role;
}

}  // namespace

void add_tools_as_text(Json& messages, const Json& tools) {
  std::string text = "You may call functions. They are, one a line, as JSON:\n";
  for (const Json& tool : tools) {
    text += to_json_line(tool["function"]) + "\n";
  }
  text +=
      "To call a function, answer with its name and an object of arguments "
      "that follow its parameters, in this form:\n"
      "<tool_call>\n"
      "{\"name\": \"NAME\", \"arguments\": {\"KEY\": \"VALUE\"}}\n"
      "</tool_call>\n"
      "The result comes back between <tool_response> and </tool_response>.";
  if (!is_role(messages[0], "system")) {
    messages.insert(
        messages.begin(), Json{{"role", "system"}, {"content", text}}
    );
    return;
  }
  messages[0]["content"] = joined(text_of(messages[0]), "\n\n", text);
}

bool write_calls_as_text(Json& messages) {
  Json out = Json::array();
  bool changed = false, after_result = false;
  for (const Json& message : messages) {
    Json made = message;
    const bool result = is_role(message, "tool");
    if (result) {
      made = {{"role", "user"}, {"content", result_text(message)}};
    } else if (const auto calls = message.find("tool_calls");
               calls != message.end()) {
      std::string text = text_of(message);
      for (const Json& call : *calls) {
        append(text, "\n", call_text(call));
      }
      made["content"] = std::move(text);
      made.erase("tool_calls");
    }
    changed = changed || made != message;
    // Turns alternate: results, and what the user says after them, are one.
    if (after_result && is_role(made, "user")) {
      // In place: what has come together is not copied for every message.
      append(
          out.back()["content"].get_ref<std::string&>(), "\n", text_of(made)
      );
    } else {
      out.push_back(std::move(made));
    }
    after_result = is_role(out.back(), "user") && (result || after_result);
  }
  messages = std::move(out);
  return changed;
}

}  // namespace hearth::serve
