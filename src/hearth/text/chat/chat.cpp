#include "hearth/text/chat/chat.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/chat/chat_turns_impl.h"
#include "hearth/text/template/text.h"

namespace hearth::text {
namespace {

using jinja::Dict;
using jinja::Value;

// Failures of conversion have no place in the template to name.
Value to_value(const Json& json, const char* what) {
  try {
    return Value::from_json(json);
  } catch (const jinja::Failure& failure) {
    throw FormatError(
        std::string("[data.chat] ") + what + ": " + failure.message
    );
  }
}

void check_list(const Json& json, const char* what) {
  std::string got = json.is_array() ? "" : json.type_name();
  for (std::size_t i = 0; json.is_array() && i < json.size(); ++i) {
    if (json[i].is_object()) continue;
    got = fmt::format("{} at {}", json[i].type_name(), i);
    break;
  }
  if (!got.empty()) {
    throw FormatError(
        fmt::format(
            "[data.chat] {} must be a list of objects, got {}", what, got
        )
    );
  }
}

// Reasoning goes by three names; templates read one or another.
Json with_reasoning_aliases(const Json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found == message.end() || found->is_null()) continue;
    Json made = Json::object();
    made["thinking"] = *found;
    for (const auto& [key, value] : message.items()) made[key] = value;
    made["reasoning_content"] = *found;
    return made;
  }
  return message;
}

// Errors of a template do not know its file.
template <class Body>
auto in_file(const std::string& file, Body body) {
  try {
    return body();
  } catch (const TemplateError& e) {
    if (file.empty()) throw;
    throw TemplateError(e.fault(), e.message(), e.line(), e.column(), file);
  }
}

// The mark at the end of the message that the model continues. Its space shows
// whether the template strips what it is given.
constexpr std::string_view kGoesOn = "HEARTH_GOES_ON ";

// Whether the text has the part, in time of their lengths also where both are
// one letter written a million times, as find() is not.
bool holds(std::string_view text, std::string_view part) {
  // The prefix function of Knuth, Morris and Pratt: for each beginning of the
  // part, the length of the longest shorter beginning that it ends with.
  std::vector<std::size_t> falls(part.size() + 1);
  std::size_t same = 0;
  const auto follow = [&](char c) {
    while (same > 0 && part[same] != c) same = falls[same];
    if (part[same] == c) ++same;
  };
  for (std::size_t i = 1; i < part.size(); ++i) {
    follow(part[i]);
    falls[i + 1] = same;
  }
  same = 0;
  for (std::size_t i = 0; i < text.size() && same < part.size(); ++i) {
    follow(text[i]);
  }
  return same == part.size();
}

// Puts the mark behind the content, or behind its last text where it is a list,
// and returns what was there.
std::string mark_end(Json& message) {
  const auto content = message.find("content");
  Json* text = nullptr;
  if (content != message.end() && content->is_string()) text = &*content;
  if (content != message.end() && content->is_array()) {
    for (Json& block : *content) {
      if (block.is_object() && block.contains("text")) text = &block["text"];
    }
  }
  if (text == nullptr || !text->is_string()) {
    throw UsageError(
        "[data.chat] the final message must have content to continue"
    );
  }
  const auto before = text->get<std::string>();
  *text = before + std::string(kGoesOn);
  return before;
}

}  // namespace

std::vector<Value> message_values(const Json& messages) {
  check_list(messages, "messages");
  if (messages.empty()) {
    throw UsageError(
        "[data.chat] Cannot apply chat template to an empty conversation. "
        "Provide at least one message."
    );
  }
  std::vector<Value> values;
  values.reserve(messages.size());
  for (const Json& message : messages) {
    Json shown = with_reasoning_aliases(message);
    shown.erase("train");
    values.push_back(to_value(shown, "messages"));
    if (values.back().depth() >= jinja::kMaxNesting) {
      throw FormatError(
          "[data.chat] messages must nest less than " +
          std::to_string(jinja::kMaxNesting) + " deep"
      );
    }
  }
  return values;
}

ChatTemplate::ChatTemplate(
    std::string_view source,
    Json special_tokens,
    const TemplateLimits& limits,
    std::string file
)
    : file_(std::move(file)),
      source_(source),
      template_(in_file(file_, [&] { return Template(source, limits); })),
      special_tokens_(std::move(special_tokens)) {}

bool ChatTemplate::gives_itself(std::string_view name) const {
  constexpr std::string_view kNames[] = {
      "messages",  "tools",     "documents",  "add_generation_prompt",
      "bos_token", "eos_token", "pad_token",  "unk_token",
      "sep_token", "cls_token", "mask_token",
  };
  return std::ranges::find(kNames, name) != std::end(kNames) ||
         special_tokens_.contains(std::string(name)) ||
         Template::is_given(name);
}

Dict ChatTemplate::variables(const ChatOptions& options) const {
  Dict made;
  for (const auto& [name, token] : special_tokens_.items()) {
    made.set(Value(name), to_value(token, "special tokens"));
  }
  for (const auto& [name, value] : options.variables.items()) {
    if (name == "messages" || name == "tools" || name == "documents" ||
        name == "add_generation_prompt") {
      throw UsageError(
          "[data.chat] variables must not be named " + name +
          ", which has an option of its own"
      );
    }
    made.set(Value(name), to_value(value, "variables"));
  }
  if (!options.tools.is_null()) check_list(options.tools, "tools");
  if (!options.documents.is_null()) check_list(options.documents, "documents");
  made.set("tools", to_value(options.tools, "tools"));
  made.set("documents", to_value(options.documents, "documents"));
  made.set("add_generation_prompt", options.add_generation_prompt);
  return made;
}

std::string ChatTemplate::render_text(
    const Json& messages,
    const ChatOptions& options
) const {
  if (options.effort != nullptr) options.effort->spend(messages.size() + 1);
  Dict dict = variables(options);
  dict.set("messages", Value::list(message_values(messages)));
  return in_file(file_, [&] {
    const std::tm now = options.now.value_or(local_now());
    return template_.render(dict, now, options.effort).text;
  });
}

std::string ChatTemplate::render_to_continue(
    Json messages,
    const ChatOptions& options
) const {
  using jinja::Side;
  using jinja::strip;
  if (options.add_generation_prompt) {
    throw UsageError(
        "[data.chat] a final message that goes on must not be followed by a "
        "generation prompt"
    );
  }
  check_list(messages, "messages");
  if (messages.empty()) return render_text(messages, options);
  const std::string content = mark_end(messages.back());
  std::string text = render_text(messages, options);
  const std::size_t end = text.rfind(strip(kGoesOn, Side::kBoth));
  if (end == text.npos || !holds(text, strip(content, Side::kBoth))) {
    throw FormatError(
        "[data.chat] the final message must appear in the rendered text to be "
        "continued; this template leaves it out or changes it"
    );
  }
  const bool keeps_spaces = text.compare(end, kGoesOn.size(), kGoesOn) == 0;
  text.resize(end);
  return keeps_spaces ? text : std::string(strip(text, Side::kRight));
}

std::string ChatTemplate::render(
    const Json& messages,
    const ChatOptions& options
) const {
  return options.continue_final_message ? render_to_continue(messages, options)
                                        : render_text(messages, options);
}

ChatRendering ChatTemplate::render_for_training(
    const Json& messages,
    const ChatOptions& options,
    TrainOn train_on
) const {
  if (options.continue_final_message) {
    throw UsageError(
        "[data.chat] a message that goes on has no end to train on"
    );
  }
  TurnFinder finder(
      template_, variables(options), message_values(messages),
      options.now.value_or(local_now())
  );
  return in_file(file_, [&] {
    return finder.run(turns_to_learn(messages, train_on));
  });
}

std::vector<int> turns_to_learn(const Json& messages, TrainOn train_on) {
  std::vector<int> turns;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const auto train = message.find("train");
    if (train != message.end() && !train->is_boolean()) {
      throw FormatError(
          "[data.chat] \"train\" of message " + std::to_string(i) +
          " must be true or false, got " + train->type_name()
      );
    }
    if (message.value("role", Json()) != "assistant") continue;
    if (train_on == TrainOn::kLastAssistant) turns.clear();
    turns.push_back(static_cast<int>(i));
  }
  std::erase_if(turns, [&](int i) {
    return !messages[static_cast<std::size_t>(i)].value("train", true);
  });
  return turns;
}

std::vector<std::uint8_t> loss_mask(
    std::span<const TextSpan> tokens,
    std::span<const ChatTurn> turns
) {
  std::vector<std::uint8_t> mask(tokens.size(), 0);
  std::size_t turn = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::size_t at = tokens[i].begin;
    while (turn < turns.size() && turns[turn].span.end <= at) ++turn;
    if (turn == turns.size()) break;
    mask[i] = at >= turns[turn].span.begin;
  }
  return mask;
}

}  // namespace hearth::text
