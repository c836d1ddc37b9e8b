#pragma once
// Where in a rendered conversation each turn's text lies.
#include <optional>
#include <string>
#include <vector>

#include "hearth/text/chat/chat.h"

namespace hearth::text {

// Messages as the template sees them: reasoning under all its names, "train"
// left out. Throws FormatError, or UsageError when there are none.
std::vector<jinja::Value> message_values(const Json& messages);

// Indices of the assistant messages to learn.
std::vector<int> turns_to_learn(const Json& messages, TrainOn train_on);

class TurnFinder {
 public:
  TurnFinder(
      const Template& source,
      jinja::Dict variables,
      std::vector<jinja::Value> messages,
      const std::tm& now
  );
  ChatRendering run(const std::vector<int>& wanted);

 private:
  TemplateRendering render(
      std::vector<jinja::Value> messages,
      bool generation_prompt
  ) const;
  // Returns nothing when the template refuses such a conversation.
  std::optional<std::string> try_render(
      std::vector<jinja::Value> messages,
      bool generation_prompt
  ) const;
  void from_generations(
      const TemplateRendering& full,
      const std::vector<int>& wanted
  );
  std::optional<TextSpan> by_prefix(std::size_t turn) const;
  // What of a message the mark replaces: the content and calls, the content
  // alone, or the thought and the content.
  enum class Marked { kAll, kContent, kThoughtAndContent };
  std::optional<TextSpan> by_mark(std::size_t turn, Marked what) const;
  jinja::Value marked(std::size_t turn, Marked what) const;
  std::size_t end_mark_size(
      std::size_t turn,
      const jinja::Value& stand_in,
      std::string_view after
  ) const;

  const Template& template_;
  jinja::Dict variables_;
  std::vector<jinja::Value> messages_;
  std::tm now_;
  bool generation_prompt_;
  std::string mark_;
  ChatRendering result_;
};

}  // namespace hearth::text
