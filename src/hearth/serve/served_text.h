#pragma once
// The text side of a model: messages and prompts to token ids, and what its
// template can say at all.
#include <memory>
#include <optional>
#include <vector>

#include "hearth/infer/tools/tool_calls.h"
#include "hearth/serve/api/generation_request.h"
#include "hearth/serve/api/special_text.h"
#include "hearth/text/chat/chat.h"

namespace hearth::serve {

// A base and its adapters share one.
class ServedText {
 public:
  ServedText(
      std::shared_ptr<const text::Tokenizer> tokenizer,  // never null
      std::optional<text::ChatTemplates> templates,
      std::vector<std::int32_t> stop_ids,
      SpecialText special = SpecialText::plain
  );

  const std::shared_ptr<const text::Tokenizer>& tokenizer() const {
    return tokenizer_;
  }
  const std::vector<std::int32_t>& stop_ids() const { return stop_ids_; }
  bool chats() const { return templates_.has_value(); }
  // How the template with tools teaches to call them; none where it does not.
  infer::ToolForm tool_form() const;

  // Each throws ApiError: for what the template refuses or would leave out,
  // however it is put (tool_text.h), and, before it is tokenised, for text that
  // so many tokens cannot hold.
  TokenIds chat_ids(const ChatRequest& request, int most_tokens) const;
  TokenIds raw_ids(const std::string& prompt, int most_tokens) const;
  // A text that is complete: with the ids that the tokenizer puts behind a
  // text, too. `where` is the name of the text in the request.
  TokenIds whole_ids(
      const std::string& text,
      int most_tokens,
      const std::string& where
  ) const;

 private:
  std::string chat_text(const ChatRequest& request) const;
  TokenIds encoded(
      std::string text,
      const std::string& mark,
      int most_tokens
  ) const;
  void check_size(
      const std::string& text,
      int most_tokens,
      const std::string& param
  ) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<text::ChatTemplates> templates_;
  std::vector<std::int32_t> stop_ids_;
  SpecialText special_;
  SpecialMarks marks_;
  std::size_t longest_token_ = 1;  // in bytes
};

}  // namespace hearth::serve
