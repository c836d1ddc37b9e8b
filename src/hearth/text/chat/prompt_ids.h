#pragma once
// A prompt to token ids: a chat through its template, or a text as it is.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/text/chat/chat.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::text {

// A message that the chat template leaves out, so that the model would never
// see it.
class UnreadMessage : public UsageError {
 public:
  UnreadMessage(std::size_t index, const std::string& role);
  std::size_t index() const { return index_; }

 private:
  std::size_t index_;
};

// Throws UnreadMessage where `rendered`, which is what the template makes of
// the messages, lacks one of them.
void check_messages_are_read(
    const ChatTemplate& chat,
    const Json& messages,
    const ChatOptions& options,
    const std::string& rendered
);

// Messages through a template, all of which it must read; it writes special
// tokens itself.
std::vector<std::int32_t> chat_ids(
    const Tokenizer& tokenizer,
    const ChatTemplate& chat,
    const Json& messages,
    const ChatOptions& options
);

// The ids that the tokenizer puts before a text, and those of the text.
std::vector<std::int32_t> raw_ids(
    const Tokenizer& tokenizer,
    std::string_view text
);

}  // namespace hearth::text
