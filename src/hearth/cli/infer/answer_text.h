#pragma once
// What is shown of an answer's tokens: its text, and apart from it the tools
// that it calls.
#include <optional>
#include <string>
#include <vector>

#include "hearth/infer/engine/engine.h"
#include "hearth/infer/text_model.h"
#include "hearth/infer/tools/tool_calls.h"

namespace hearth::cli {

// How the model's template teaches to call tools; none where tools is null.
// Throws UsageError when there are tools and the template knows none.
infer::ToolForm tool_form(const infer::TextModel& model, const Json& tools);

class AnswerText {
 public:
  // tools: what the prompt offers, in OpenAI's form; null: none, and all text
  // is text. Throws as tool_form() does.
  AnswerText(const infer::TextModel& model, const Json& tools);

  // The text that may be shown now.
  std::string push(const infer::GeneratedToken& token);
  std::string finish();

  const std::string& text() const { return text_; }
  // A list in OpenAI's form; null when there are none.
  const Json& calls() const { return calls_; }

 private:
  const infer::TextModel& model_;
  std::optional<infer::ToolCallReader> reader_;
  std::string text_;
  Json calls_;

  std::string take(const infer::ToolText& part);
};

// "stop", "length", "cancelled", or "tool_calls" where there are some.
std::string finish_name(infer::Finish finish, const Json& calls);

// Tokens as people and programs read them, with their log probabilities:
// [{"id", "token", "logprob", "top": [{"id", "token", "logprob"}]}]. A token's
// text is what it is inside a text, so that the tokens join to it; tokenizer
// may be null.
Json log_probs_json(
    const std::vector<infer::GeneratedToken>& tokens,
    const text::Tokenizer* tokenizer
);

}  // namespace hearth::cli
