// TurnFinder: where each message of a chat stands in the template's text.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/text/chat/chat_turns_impl.h"
#include "hearth/text/template/python.h"

namespace hearth::text {

using jinja::Dict;
using jinja::Value;

TurnFinder::TurnFinder(
    const Template& source,
    Dict variables,
    std::vector<Value> messages,
    const std::tm& now
)
    : template_(source),
      variables_(std::move(variables)),
      messages_(std::move(messages)),
      now_(now) {
  const Value* prompt = variables_.find("add_generation_prompt");
  generation_prompt_ = prompt != nullptr && jinja::truthy(*prompt);
}

TemplateRendering TurnFinder::render(
    std::vector<Value> messages,
    bool generation_prompt
) const {
  Dict variables = variables_;
  variables.set("messages", Value::list(std::move(messages)));
  variables.set("add_generation_prompt", generation_prompt);
  return template_.render(variables, now_);
}

std::optional<std::string> TurnFinder::try_render(
    std::vector<Value> messages,
    bool generation_prompt
) const {
  try {
    return render(std::move(messages), generation_prompt).text;
  } catch (const TemplateError&) {
    return std::nullopt;
  }
}

ChatRendering TurnFinder::run(const std::vector<int>& wanted) {
  TemplateRendering full = render(messages_, generation_prompt_);
  result_.text = full.text;
  if (template_.has_generation()) {
    from_generations(full, wanted);
    return std::move(result_);
  }
  mark_ = "hearth-turn-mark";
  while (result_.text.find(mark_) != std::string::npos) mark_ += "-x";
  for (const int message : wanted) {
    const auto turn = static_cast<std::size_t>(message);
    auto span = by_prefix(turn);
    for (const Marked what :
         {Marked::kAll, Marked::kContent, Marked::kThoughtAndContent}) {
      if (!span) span = by_mark(turn, what);
    }
    if (!span) {
      throw FormatError(
          "[data.chat] message " + std::to_string(message) +
              " must appear in the rendered text where it can be found; this "
              "template changes it depending on what follows",
          "train on the last turn only, or put {% generation %} around the "
          "assistant's text in the template"
      );
    }
    result_.turns.push_back({*span, message});
  }
  return std::move(result_);
}

void TurnFinder::from_generations(
    const TemplateRendering& full,
    const std::vector<int>& wanted
) {
  std::vector<int> assistants;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Value* role = messages_[i].dict().find("role");
    if (role != nullptr && role->is_string() && role->text() == "assistant") {
      assistants.push_back(static_cast<int>(i));
    }
  }
  const bool in_order = assistants.size() == full.generations.size();
  for (std::size_t i = 0; i < full.generations.size(); ++i) {
    auto [span, message] = full.generations[i];
    if (message < 0 && in_order) message = assistants[i];
    if (message < 0) {
      throw FormatError(
          "[data.chat] a generation block must belong to one message; this "
          "template has " +
          std::to_string(full.generations.size()) + " for " +
          std::to_string(assistants.size()) + " assistant messages"
      );
    }
    const bool learned =
        std::find(wanted.begin(), wanted.end(), message) != wanted.end();
    if (learned && span.begin < span.end) {
      result_.turns.push_back({span, message});
    }
  }
}

// The text up to the turn with a generation prompt, and the text up to the
// turn's end, are both how the full text starts: the turn is what is between.
std::optional<TextSpan> TurnFinder::by_prefix(std::size_t turn) const {
  if (turn == 0) return std::nullopt;
  const auto begin = messages_.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(turn);
  const auto before = try_render({begin, end}, true);
  if (!before || !result_.text.starts_with(*before)) return std::nullopt;
  const auto through = try_render({begin, end + 1}, false);
  if (!through || !result_.text.starts_with(*through) ||
      !through->starts_with(*before)) {
    return std::nullopt;
  }
  return TextSpan{before->size(), through->size()};
}

// The turn's message with a mark for its content, in the shape it had.
Value TurnFinder::marked(std::size_t turn, Marked what) const {
  Dict made;
  for (const auto& [key, value] : messages_[turn].dict().entries) {
    const std::string name = key.is_string() ? key.text() : std::string();
    if (name == "tool_calls" && what == Marked::kAll) continue;
    if (name == "reasoning_content" || name == "thinking" ||
        name == "reasoning" || name == "content") {
      continue;
    }
    made.set(key, value);
  }
  const Value* content = messages_[turn].dict().find("content");
  if (content != nullptr && content->is_sequence()) {
    Dict part;
    part.set("type", "text");
    part.set("text", mark_);
    made.set("content", Value::list({Value::dict(std::move(part))}));
  } else if (what == Marked::kThoughtAndContent) {
    made.set("content", "<think>\n" + mark_ + "\n</think>\n\n" + mark_);
  } else {
    made.set("content", mark_);
  }
  return Value::dict(std::move(made));
}

std::optional<TextSpan> TurnFinder::by_mark(
    std::size_t turn,
    Marked what
) const {
  std::vector<Value> messages = messages_;
  const Value stand_in = marked(turn, what);
  messages[turn] = stand_in;
  const auto text = try_render(std::move(messages), generation_prompt_);
  if (!text) return std::nullopt;
  const std::size_t at = text->find(mark_);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t last = text->rfind(mark_);
  if (last != at && what != Marked::kThoughtAndContent) return std::nullopt;
  const auto before = std::string_view(*text).substr(0, at);
  const auto after = std::string_view(*text).substr(last + mark_.size());
  const std::string& full = result_.text;
  if (full.size() < before.size() + after.size() || !full.starts_with(before) ||
      !full.ends_with(after)) {
    return std::nullopt;
  }
  const std::size_t end = full.size() - after.size();
  return TextSpan{at, end + end_mark_size(turn, stand_in, after)};
}

// How much of what follows the content is the turn's own end: what a
// conversation that stops here has in common with this one.
std::size_t TurnFinder::end_mark_size(
    std::size_t turn,
    const Value& stand_in,
    std::string_view after
) const {
  std::vector<Value> messages(
      messages_.begin(), messages_.begin() + static_cast<std::ptrdiff_t>(turn)
  );
  messages.push_back(stand_in);
  const auto text = try_render(std::move(messages), false);
  if (!text) return 0;
  const std::size_t at = text->rfind(mark_);
  if (at == std::string::npos) return 0;
  const auto alone = std::string_view(*text).substr(at + mark_.size());
  const auto differ =
      std::mismatch(alone.begin(), alone.end(), after.begin(), after.end());
  auto size = static_cast<std::size_t>(differ.first - alone.begin());
  if (size == after.size()) return size;
  // The next turn's first mark may begin as this one's end does: never stop
  // inside a bracketed token.
  for (const auto& [open, close] : {std::pair('<', '>'), std::pair('[', ']')}) {
    const std::size_t last = after.substr(0, size).rfind(open);
    if (last == std::string_view::npos) continue;
    const bool closed =
        after.substr(last, size - last).find(close) != std::string_view::npos;
    if (!closed) size = last;
  }
  return size;
}

}  // namespace hearth::text
