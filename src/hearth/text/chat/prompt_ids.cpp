#include "hearth/text/chat/prompt_ids.h"

#include <fmt/format.h>

namespace hearth::text {

UnreadMessage::UnreadMessage(std::size_t index, const std::string& role)
    : UsageError(
          fmt::format(
              "messages[{}], of the {}, is not read by the chat template of "
              "this model",
              index,
              role
          )
      ),
      index_(index) {}

void check_messages_are_read(
    const ChatTemplate& chat,
    const Json& messages,
    const ChatOptions& options,
    const std::string& rendered
) {
  const auto i = unread_message(chat, messages, options, rendered);
  if (i) throw UnreadMessage(*i, messages[*i].value("role", "unknown role"));
}

std::vector<std::int32_t> chat_ids(
    const Tokenizer& tokenizer,
    const ChatTemplate& chat,
    const Json& messages,
    const ChatOptions& options
) {
  const std::string text = chat.render(messages, options);
  check_messages_are_read(chat, messages, options, text);
  return tokenizer.encode(text, {.add_special = false});
}

std::vector<std::int32_t> raw_ids(
    const Tokenizer& tokenizer,
    std::string_view text
) {
  auto ids = tokenizer.prefix_ids();
  tokenizer.encode(text, ids, {.add_special = false});
  return ids;
}

}  // namespace hearth::text
