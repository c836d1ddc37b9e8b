#include "hearth/cli/generate_prompt.h"

#include <charconv>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/model_flags.h"

namespace hearth::cli {

Prompt ids_prompt(const std::string& text) {
  Prompt out;
  const char *at = text.data(), *end = at + text.size();
  while (at < end) {
    if (*at == ',' || *at == ' ') {
      ++at;
      continue;
    }
    std::int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || next == at) {
      throw UsageError(
          fmt::format("--ids must be numbers such as 1,2,3, got '{}'", text)
      );
    }
    out.ids.push_back(id);
    at = next;
  }
  if (out.ids.empty()) throw UsageError("--ids names no token");
  return out;
}

Prompt messages_prompt(const infer::TextModel& model, const Json& messages) {
  Prompt out;
  out.chat = true;
  const double start = milliseconds_now();
  out.ids = model.chat_prompt(messages);
  out.tokenizer_ms = milliseconds_now() - start;
  return out;
}

Prompt text_prompt(
    const infer::TextModel& model,
    const std::string& text,
    const std::optional<std::string>& system,
    bool raw
) {
  if (!raw && (model.templates || system)) {
    Json messages = Json::array();
    if (system) messages.push_back({{"role", "system"}, {"content", *system}});
    messages.push_back({{"role", "user"}, {"content", text}});
    return messages_prompt(model, messages);
  }
  Prompt out;
  const double start = milliseconds_now();
  out.ids = model.raw_prompt(text);
  out.tokenizer_ms = milliseconds_now() - start;
  return out;
}

}  // namespace hearth::cli
