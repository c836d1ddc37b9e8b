#pragma once
// A model's chat template applied to messages: the text transformers'
// apply_chat_template gives, byte for byte, and which bytes of it the model
// is to learn. Knows nothing of token ids.
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/base/json.h"
#include "hearth/text/template/template.h"

namespace hearth::text {

struct ChatOptions {
  bool add_generation_prompt = false;
  // The text ends where the last message's content does, for the model to go
  // on with it. Not together with a generation prompt.
  bool continue_final_message = false;
  Json tools;                       // a list of schemas, or null
  Json documents;                   // a list of objects, or null
  Json variables = Json::object();  // anything else the template reads
  std::optional<std::tm> now;       // strftime_now; the local time by default
  Effort* effort = nullptr;         // what rendering counts to, if anything
};

// Which turns the loss is taken on. A message with "train": false is never
// learned; the flag itself is not shown to the template.
enum class TrainOn { kAllAssistant, kLastAssistant };

struct ChatTurn {
  TextSpan span;    // from after the turn's header to after its end mark
  int message = 0;  // index into the messages
};

struct ChatRendering {
  std::string text;
  std::vector<ChatTurn> turns;  // the ones to learn, in order of the text
};

class ChatTemplate {
 public:
  // `special_tokens` maps bos_token, eos_token ... to their text; `file` is
  // what errors call the template. Throws TemplateError.
  ChatTemplate(
      std::string_view source,
      Json special_tokens = Json::object(),
      const TemplateLimits& limits = {},
      std::string file = {}
  );

  std::string render(const Json& messages, const ChatOptions& options) const;

  // The template's source as it was given.
  const std::string& source() const { return source_; }
  // Whether the template reads this variable, key of a message, or word.
  bool mentions(std::string_view word) const {
    return template_.mentions(word);
  }

  // Whether the template has a value of this name without a variable: the
  // conversation and what goes with it, a special token, or what the language
  // gives. A client's variable must not take its place.
  bool gives_itself(std::string_view name) const;

  // Spans come from {% generation %} where the template has it. Otherwise the
  // turn's place is found by rendering the conversation up to it, and where
  // the template writes earlier turns differently once later ones follow, by
  // rendering it with a mark in the turn's place. Throws FormatError when
  // neither agrees with the full text.
  ChatRendering render_for_training(
      const Json& messages,
      const ChatOptions& options,
      TrainOn train_on
  ) const;

 private:
  friend class TurnFinder;
  jinja::Dict variables(const ChatOptions& options) const;
  std::string render_text(const Json& messages, const ChatOptions& o) const;
  std::string render_to_continue(Json messages, const ChatOptions& o) const;

  std::string file_, source_;
  Template template_;
  Json special_tokens_;
};

// The first message whose content makes no difference to `text`, which is what
// the template made of them all: the model would never see it. What stands
// beside tool calls is not looked at.
std::optional<std::size_t> unread_message(
    const ChatTemplate& chat,
    const Json& messages,
    const ChatOptions& options,
    const std::string& text
);

// The templates of a model: usually one, sometimes one more for tools.
class ChatTemplates {
 public:
  // Loads templates from a tokenizer's folder, or a file inside it.
  // tokens_from: the model or tokenizer whose bos_token, eos_token and so on it
  // is to have; empty: those beside it. Throws FormatError when there is no
  // template.
  static ChatTemplates load(
      const std::string& path,
      const TemplateLimits& limits = {},
      const std::string& tokens_from = {}
  );
  // As load(), but returns nothing when there is no template.
  static std::optional<ChatTemplates> find(
      const std::string& path,
      const TemplateLimits& limits = {},
      const std::string& tokens_from = {}
  );
  // "tool_use" when there are tools and such a template, else the default; or
  // the one called `name`.
  const ChatTemplate& choose(
      bool with_tools,
      const std::string& name = {}
  ) const;

 private:
  std::map<std::string, ChatTemplate> by_name_;
};

// 1 for each token whose first byte lies in a span, else 0. Both in order.
std::vector<std::uint8_t> loss_mask(
    std::span<const TextSpan> tokens,
    std::span<const ChatTurn> turns
);

}  // namespace hearth::text
