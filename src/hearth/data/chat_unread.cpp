// Which messages a template leaves out: found by marks behind their contents.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/chat.h"

namespace hearth::data {
namespace {

// A call is what such a message says; some templates write it alone.
bool says_something(const Json& message) {
  const auto content = message.find("content");
  const auto calls = message.find("tool_calls");
  if (content == message.end() || !content->is_string()) return false;
  if (calls != message.end() && !calls->is_null()) return false;
  return content->get_ref<const std::string&>().find_first_not_of(" \t\r\n") !=
         std::string::npos;
}

class MarkedChat {
 public:
  MarkedChat(
      const ChatTemplate& chat,
      const Json& messages,
      const ChatOptions& options,
      const std::string& text
  )
      : chat_(chat), messages_(messages), options_(options) {
    while (text.find(word_) != text.npos) word_ += 'X';
  }

  std::string mark(std::size_t i) const {
    return fmt::format("{}_{}_", word_, i);
  }
  // Nothing where the template refuses the marked contents.
  std::optional<std::string> render(const std::vector<std::size_t>& at) const {
    Json marked = messages_;
    for (const std::size_t i : at) {
      auto& content = marked[i]["content"].get_ref<std::string&>();
      content += mark(i);
    }
    try {
      return chat_.render(marked, options_);
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }

 private:
  const ChatTemplate& chat_;
  const Json& messages_;
  const ChatOptions& options_;
  std::string word_ = "HEARTH_SAID";
};

}  // namespace

std::optional<std::size_t> unread_message(
    const ChatTemplate& chat,
    const Json& messages,
    const ChatOptions& options,
    const std::string& text
) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (says_something(messages[i])) all.push_back(i);
  }
  const MarkedChat marked(chat, messages, options, text);
  const auto whole = marked.render(all);
  for (const std::size_t i : all) {
    if (whole && whole->find(marked.mark(i)) != whole->npos) continue;
    // It may be read and not written: then something else has changed.
    if (marked.render({i}) == text) return i;
  }
  return std::nullopt;
}

}  // namespace hearth::data
