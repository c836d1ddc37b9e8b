#include "hearth/cli/infer/chat_history.h"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::cli {

ChatHistory::ChatHistory(const infer::TextModel& model, bool raw)
    : model_(model), raw_(raw || !model.templates) {
  model.need_tokenizer();
}

void ChatHistory::set_system(const std::string& text) {
  if (raw_) {
    throw UsageError("a system message needs a chat template");
  }
  check_system(text);
  system_ = text;
}

// The message is tried beside a question that stands for any: what will be
// asked is not known yet.
void ChatHistory::check_system(const std::string& text) const {
  if (text.empty()) return;
  const auto message = [](const char* role, const std::string& content) {
    return Json{{"role", role}, {"content", content}};
  };
  try {
    model_.chat_prompt(
        Json::array({message("system", text), message("user", "x")})
    );
  } catch (const text::UnreadMessage&) {
    throw UsageError(
        "a system message is not read by the chat template of this model"
    );
  }
}

std::vector<std::int32_t> ChatHistory::tokens(
    const std::string& text,
    std::size_t left_out
) const {
  if (raw_) {
    std::string all;
    for (std::size_t i = left_out; i < turns_.size(); ++i) {
      all += turns_[i].content;
    }
    return model_.raw_prompt(all + text);
  }
  Json messages = Json::array();
  if (!system_.empty()) {
    messages.push_back({{"role", "system"}, {"content", system_}});
  }
  for (std::size_t i = left_out; i < turns_.size(); ++i) {
    messages.push_back(
        {{"role", turns_[i].role}, {"content", turns_[i].content}}
    );
  }
  messages.push_back({{"role", "user"}, {"content", text}});
  return model_.chat_prompt(messages);
}

// Turns go in pairs, oldest first, so that what is left begins with a question.
std::vector<std::int32_t> ChatHistory::prompt_for(
    const std::string& text,
    int limit,
    int room
) {
  const auto most = static_cast<std::size_t>(std::max(limit - room, 1));
  auto ids = tokens(text, left_out_);
  if (ids.size() <= most) return ids;
  const auto alone = tokens(text, turns_.size());
  if (alone.size() >= static_cast<std::size_t>(limit)) {
    throw UsageError(
        fmt::format(
            "this message alone is {} tokens, which leaves no room for an "
            "answer in the model's context of {}",
            alone.size(), limit
        )
    );
  }
  const std::size_t history = most - std::min(most, alone.size());
  const std::size_t all = turns_.size() / 2;
  const auto pairs = std::views::iota(std::min(left_out_ / 2 + 1, all), all);
  const auto too_long = [&](std::size_t pair) {
    return tokens(text, 2 * pair).size() > alone.size() + history / 2;
  };
  const auto at = std::ranges::partition_point(pairs, too_long);
  left_out_ = at == pairs.end() ? turns_.size() : 2 * *at;
  return tokens(text, left_out_);
}

void ChatHistory::add(const std::string& text, const std::string& answer) {
  turns_.push_back({"user", text});
  turns_.push_back({"assistant", answer});
}

void ChatHistory::clear() {
  turns_.clear();
  left_out_ = 0;
}

Json ChatHistory::save() const {
  Json out = Json::object();
  if (!system_.empty()) out["system"] = system_;
  out["messages"] = Json::array();
  for (const Message& m : turns_) {
    out["messages"].push_back({{"role", m.role}, {"content", m.content}});
  }
  return out;
}

void ChatHistory::load(const Json& saved, const std::string& file) {
  const auto refuse = [&](const char* what) {
    throw FormatError::at(file, 0, what);
  };
  if (!saved.is_object() || !saved.contains("messages") ||
      !saved["messages"].is_array()) {
    refuse("this is no conversation: it must have a list of messages");
  }
  std::string system;
  if (saved.contains("system")) {
    if (!saved["system"].is_string()) refuse("system must be a string");
    system = saved["system"].get<std::string>();
  }
  std::vector<Message> turns;
  for (const Json& m : saved["messages"]) {
    const bool whole = m.is_object() && m.contains("role") &&
                       m.contains("content") && m["role"].is_string() &&
                       m["content"].is_string();
    if (!whole) refuse("a message must have a role and a content, both text");
    turns.push_back(
        {m["role"].get<std::string>(), m["content"].get<std::string>()}
    );
    const char* turn = turns.size() % 2 == 1 ? "user" : "assistant";
    if (turns.back().role != turn) {
      refuse("messages must be of user and assistant in turn");
    }
  }
  if (turns.size() % 2 != 0) refuse("the last message must be the assistant's");
  if (!raw_) check_system(system);
  clear();
  turns_ = std::move(turns);
  if (!raw_) system_ = system;
}

}  // namespace hearth::cli
