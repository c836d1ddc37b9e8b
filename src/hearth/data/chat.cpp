#include "hearth/data/chat.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/data/chat_turns_impl.h"

namespace hearth::data {
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
  const bool good = json.is_array() &&
                    std::all_of(json.begin(), json.end(), [](const Json& j) {
                      return j.is_object();
                    });
  if (!good) {
    throw FormatError(
        std::string("[data.chat] ") + what +
        " must be a list of objects, got " + json.type_name()
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
    const TemplateLimits& limits
)
    : template_(source, limits), special_tokens_(std::move(special_tokens)) {}

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

std::string ChatTemplate::render(
    const Json& messages,
    const ChatOptions& options
) const {
  Dict dict = variables(options);
  dict.set("messages", Value::list(message_values(messages)));
  return template_.render(dict, options.now.value_or(local_now())).text;
}

ChatRendering ChatTemplate::render_for_training(
    const Json& messages,
    const ChatOptions& options,
    TrainOn train_on
) const {
  TurnFinder finder(
      template_, variables(options), message_values(messages),
      options.now.value_or(local_now())
  );
  return finder.run(turns_to_learn(messages, train_on));
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

}  // namespace hearth::data
