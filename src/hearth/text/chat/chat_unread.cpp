// Which messages a template leaves out: found by marks behind their contents.
#include <charconv>
#include <random>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/chat/chat.h"

namespace hearth::text {
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

// Letters that nobody can foresee and that the text does not hold.
std::string word_outside(const std::string& text) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr int kCount = 16;
  std::random_device device;
  std::uniform_int_distribution<std::size_t> any(0, kLetters.size() - 1);
  std::string word;
  do {
    word.clear();
    for (int i = 0; i < kCount; ++i) word += kLetters[any(device)];
  } while (text.find(word) != text.npos);
  return word;
}

class MarkedChat {
 public:
  MarkedChat(
      const ChatTemplate& chat,
      const Json& messages,
      const ChatOptions& options,
      const std::string& text
  )
      : chat_(chat),
        messages_(messages),
        options_(options),
        word_(word_outside(text)) {}

  // Returns nothing where the template refuses the marked contents.
  std::optional<std::string> render(const std::vector<std::size_t>& at) const {
    Json marked = messages_;
    for (const std::size_t i : at) {
      auto& content = marked[i]["content"].get_ref<std::string&>();
      content += fmt::format("{}_{}_", word_, i);
    }
    try {
      return chat_.render(marked, options_);
    } catch (const EffortError&) {
      throw;
    } catch (const UsageError&) {
      return std::nullopt;
    }
  }

  // The messages whose marks the text holds.
  std::vector<bool> found_in(const std::string& text) const {
    std::vector<bool> found(messages_.size());
    for (std::size_t at = text.find(word_); at != text.npos;
         at = text.find(word_, at + 1)) {
      std::size_t i = 0;
      const char* const begin = text.data() + at + word_.size() + 1;
      const char* const end = text.data() + text.size();
      if (begin >= end) break;
      const auto [after, error] = std::from_chars(begin, end, i);
      const bool whole = error == std::errc() && after < end && *after == '_';
      if (whole && i < found.size()) found[i] = true;
    }
    return found;
  }

 private:
  const ChatTemplate& chat_;
  const Json& messages_;
  const ChatOptions& options_;
  std::string word_;
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
  const std::vector<bool> found =
      whole ? marked.found_in(*whole) : std::vector<bool>(messages.size());
  for (const std::size_t i : all) {
    if (found[i]) continue;
    // A template may read a message without writing it: then something else of
    // the text has changed.
    if (marked.render({i}) == text) return i;
  }
  return std::nullopt;
}

}  // namespace hearth::text
