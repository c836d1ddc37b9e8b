#include "hearth/serve/api/message_turns.h"

#include <string>

namespace hearth::serve {
namespace {

bool is_role(const Json& message, const char* role) {
  return message["role"] == role;
}

bool has_text(const Json& message) {
  const auto content = message.find("content");
  return content != message.end() && content->is_string();
}

// Whether they differ in their contents alone. A result belongs to its call,
// and calls end what an assistant says.
bool are_one(const Json& before, const Json& message) {
  if (is_role(message, "tool") || before.contains("tool_calls")) return false;
  if (!has_text(before) || !has_text(message)) return false;
  if (before.size() != message.size()) return false;
  for (const auto& [key, value] : message.items()) {
    if (key == "content") continue;
    const auto same = before.find(key);
    if (same == before.end() || *same != value) return false;
  }
  return true;
}

// In place: what has come together is not copied for every message.
void add_text(Json& message, const std::string& more) {
  auto& text = message["content"].get_ref<std::string&>();
  if (!text.empty() && !more.empty()) text += "\n\n";
  text += more;
}

}  // namespace

Json in_turns(const Json& messages, TurnForm form) {
  if (form == TurnForm::own) return messages;
  Json out = Json::array();
  for (const Json& message : messages) {
    Json made = message;
    // Those that lead are one by now.
    const bool leads =
        out.empty() || (out.size() == 1 && is_role(out.back(), "system"));
    const bool may_stay =
        form < TurnForm::one_system || (form == TurnForm::one_system && leads);
    if (is_role(made, "system") && !may_stay) made["role"] = "user";
    if (!out.empty() && are_one(out.back(), made)) {
      add_text(out.back(), made["content"].get_ref<const std::string&>());
    } else {
      out.push_back(std::move(made));
    }
  }
  if (form == TurnForm::user_first && !out.empty() &&
      is_role(out.front(), "assistant")) {
    out.insert(out.begin(), Json{{"role", "user"}, {"content", ""}});
  }
  return out;
}

}  // namespace hearth::serve
