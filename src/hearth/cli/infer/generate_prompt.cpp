#include "hearth/cli/infer/generate_prompt.h"

#include <charconv>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/cli/model/model_flags.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/generation_request.h"

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

Prompt messages_prompt(
    const infer::TextModel& model,
    const Json& messages,
    const std::optional<std::string>& system,
    const Json& tools
) {
  Json all = messages;
  const bool added = system && all[0]["role"] != "system";
  if (added) {
    const Json first = {{"role", "system"}, {"content", *system}};
    all.insert(all.begin(), first);
  }
  Prompt out;
  out.chat = true;
  const double start = milliseconds_now();
  try {
    out.ids = model.chat_prompt(all, tools);
  } catch (const text::UnreadMessage& e) {
    if (!added) throw;
    if (e.index() > 0) {
      const Json& unread = all[e.index()];
      throw text::UnreadMessage(e.index() - 1, unread.value("role", ""));
    }
    throw UsageError("--system is not read by the chat template of this model");
  }
  out.tokenizer_ms = milliseconds_now() - start;
  return out;
}

Prompt text_prompt(
    const infer::TextModel& model,
    const std::string& text,
    const std::optional<std::string>& system,
    const Json& tools,
    bool raw
) {
  if (!raw && (model.templates || system || !tools.is_null())) {
    const Json message = {{"role", "user"}, {"content", text}};
    return messages_prompt(model, Json::array({message}), system, tools);
  }
  Prompt out;
  const double start = milliseconds_now();
  out.ids = model.raw_prompt(text);
  out.tokenizer_ms = milliseconds_now() - start;
  return out;
}

std::string read_prompt(const std::string& path) {
  require_input_file(path, "prompt");
  std::string text = read_text(path);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

Json read_tools_file(const std::string& path) {
  const Json list = read_json(path, "list of tools");
  try {
    return serve::read_tools(list);
  } catch (const serve::ApiError& e) {
    throw FormatError::at(path, 0, e.what());
  }
}

}  // namespace hearth::cli
