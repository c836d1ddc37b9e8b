#include "hearth/infer/tools/tool_calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "hearth/infer/tools/tool_call_parse_impl.h"
#include "hearth/infer/tools/tool_call_pieces.h"

namespace hearth::infer {
namespace {

constexpr std::string_view kHermesOpen = "<tool_call>";
constexpr std::string_view kHermesClose = "</tool_call>";
constexpr std::string_view kPythonTag = "<|python_tag|>";
constexpr std::string_view kMistralOpen = "[TOOL_CALLS]";
constexpr auto kNone = std::string_view::npos;

// Whether a token of this spelling is there for calls.
bool holds_mark(ToolForm form, std::string_view text) {
  const auto has = [&](std::string_view mark) {
    return text.find(mark) != kNone;
  };
  switch (form) {
    case ToolForm::hermes:
      return has(kHermesOpen) || has(kHermesClose);
    case ToolForm::llama:
      return has(kPythonTag);
    case ToolForm::mistral:
      return has(kMistralOpen) || has("[ARGS]") || has("[CALL_ID]");
    case ToolForm::none:
      break;
  }
  return false;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

std::size_t skip_blanks(std::string_view text, std::size_t at) {
  while (at < text.size() && is_blank(text[at])) ++at;
  return at;
}

// How many bytes at the end of the text may begin the mark.
std::size_t begun_mark(std::string_view text, std::string_view mark) {
  for (std::size_t size = std::min(text.size(), mark.size() - 1); size > 0;
       --size) {
    if (text.ends_with(mark.substr(0, size))) return size;
  }
  return 0;
}

// Whether an object that begins so can still be a call; only its first key is
// looked at.
bool may_be_call(std::string_view object) {
  constexpr std::array<std::string_view, 6> kKeys{
      "\"name\"",       "\"type\"",      "\"function\"",
      "\"parameters\"", "\"arguments\"", "\"id\""
  };
  const std::string_view rest = object.substr(skip_blanks(object, 1));
  return std::any_of(kKeys.begin(), kKeys.end(), [&](std::string_view key) {
    const std::size_t size = std::min(key.size(), rest.size());
    return key.substr(0, size) == rest.substr(0, size);
  });
}

}  // namespace

const char* tool_form_name(ToolForm form) {
  switch (form) {
    case ToolForm::none:
      return "none";
    case ToolForm::hermes:
      return "hermes";
    case ToolForm::llama:
      return "llama";
    case ToolForm::mistral:
      return "mistral";
  }
  return "none";
}

std::string_view tool_call_mark(ToolForm form) {
  return form == ToolForm::hermes    ? kHermesOpen
         : form == ToolForm::mistral ? kMistralOpen
                                     : std::string_view();
}

ToolForm tool_form_of(std::string_view chat_template) {
  const auto has = [&](std::string_view mark) {
    return chat_template.find(mark) != kNone;
  };
  if (has(kHermesOpen)) return ToolForm::hermes;
  if (has(kMistralOpen)) return ToolForm::mistral;
  if (has(kPythonTag) || has("\"parameters\": dictionary")) {
    return ToolForm::llama;
  }
  return ToolForm::none;
}

std::size_t ToolCallReader::Scan::end(std::string_view text, std::size_t from) {
  if (!begun) at = from;
  begun = true;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (escaped) {
      escaped = false;
    } else if (quoted) {
      escaped = c == '\\';
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      // Stays here: asked again, it answers the same.
      depth = 1;
      return at + 1;
    }
  }
  return kNone;
}

ToolCallReader::ToolCallReader(
    ToolForm form,
    std::vector<std::string> names,
    bool in_pieces
)
    : form_(form),
      names_(std::move(names)),
      teller_(in_pieces ? std::make_unique<ToolCallTeller>() : nullptr) {}

ToolCallReader::~ToolCallReader() = default;
ToolCallReader::ToolCallReader(ToolCallReader&&) noexcept = default;
ToolCallReader& ToolCallReader::operator=(ToolCallReader&&) noexcept = default;

ToolText ToolCallReader::feed(std::string_view text) {
  hold(text, false);
  ToolText out;
  advance(false, out);
  return out;
}

ToolText ToolCallReader::feed(
    const GeneratedToken& token,
    const text::Tokenizer& tokenizer,
    std::span<const std::int32_t> stop_ids
) {
  if (!tokenizer.is_special(token.id)) return feed(token.text);
  hold(token.text, false);
  const bool ends = std::ranges::find(stop_ids, token.id) != stop_ids.end();
  const std::string mark = tokenizer.id_to_token(token.id).value_or("");
  if (!ends && holds_mark(form_, mark)) hold(mark, true);
  return feed("");
}

void ToolCallReader::hold(std::string_view text, bool hidden) {
  held_ += text;
  hidden_.insert(hidden_.end(), text.size(), hidden);
}

ToolText ToolCallReader::finish(bool cut) {
  ToolText out;
  out.cut = cut && drop_begun_call();
  advance(true, out);
  // Blanks around calls are no answer.
  if (!called_) out.text += space_;
  space_.clear();
  return out;
}

// What feed() held back begins with the mark of a call, or is no call yet.
bool ToolCallReader::drop_begun_call() {
  std::size_t sure = 0;
  const std::size_t open = find_open(false, sure);
  if (open == kNone || attempt(false).size > 0 ||
      !attempt(true).calls.empty()) {
    return false;
  }
  // The pieces that were reported stay reported; the call has no end.
  drop(held_.size());
  space_.clear();
  return true;
}

void ToolCallReader::advance(bool last, ToolText& out) {
  while (!held_.empty()) {
    std::size_t sure = 0;
    const std::size_t open = find_open(last, sure);
    show(sure, out);
    drop(sure);
    if (open == kNone) return;
    Attempt found = attempt(last);
    if (teller_) tell(last, found, out);
    if (found.size == 0) return;
    if (found.told) {
      space_.clear();
      called_ = at_edge_ = true;
    } else if (found.calls.empty()) {
      show(found.size, out);
      at_edge_ = false;
    } else {
      for (ToolCall& call : found.calls) out.calls.push_back(std::move(call));
      space_.clear();
      called_ = at_edge_ = true;
    }
    drop(found.size);
  }
}

// Reports what is certain about the calls. Those that were begun are calls,
// whatever follows.
void ToolCallReader::tell(bool last, Attempt& found, ToolText& out) {
  teller_->look(form_, held_, names_, out.pieces);
  const std::size_t told = teller_->told();
  if (told == 0 && found.calls.empty()) return;
  if (found.size == 0 && !last) return;
  teller_->end(out.pieces);
  for (std::size_t i = told; i < found.calls.size(); ++i) {
    ToolCall& call = found.calls[i];
    out.pieces.push_back(
        {.begins = true, .name = std::move(call.name), .id = std::move(call.id)}
    );
    out.pieces.push_back({.arguments = std::move(call.arguments)});
    out.pieces.push_back({.ends = true});
  }
  if (found.calls.empty()) found.size = last ? held_.size() : teller_->size();
  found.calls.clear();
  found.told = true;
}

// The place where a call may begin. Before `sure`, or everywhere when there is
// none, text is only text.
std::size_t ToolCallReader::find_open(bool last, std::size_t& sure) const {
  const std::string_view mark = form_ == ToolForm::hermes    ? kHermesOpen
                                : form_ == ToolForm::mistral ? kMistralOpen
                                                             : kPythonTag;
  if (form_ == ToolForm::none) {
    sure = held_.size();
    return kNone;
  }
  const std::size_t marked = std::string_view(held_).find(mark);
  if (form_ == ToolForm::llama && at_edge_) {
    // An object with nothing before it; between two of them a semicolon.
    std::size_t at = skip_blanks(held_, 0);
    if (called_ && at < held_.size() && held_[at] == ';') {
      at = skip_blanks(held_, at + 1);
    }
    if (at < held_.size() && held_[at] == '{' && at < marked) {
      sure = called_ ? 0 : at;
      return at;
    }
    if (at == held_.size() && !last) {
      sure = 0;
      return kNone;
    }
  }
  sure = marked != kNone ? marked
         : last          ? held_.size()
                         : held_.size() - begun_mark(held_, mark);
  return marked;
}

ToolCallReader::Attempt ToolCallReader::attempt(bool last) {
  switch (form_) {
    case ToolForm::hermes:
      return attempt_hermes(last);
    case ToolForm::mistral:
      return attempt_mistral(last);
    default:
      return attempt_llama(last);
  }
}

ToolCallReader::Attempt ToolCallReader::attempt_hermes(bool last) {
  const std::string_view held = held_;
  const std::size_t begin = skip_blanks(held, kHermesOpen.size());
  if (begin == held.size()) return {last ? held.size() : 0, {}};
  if (held[begin] != '{') return {kHermesOpen.size(), {}};
  const std::size_t end = scan_.end(held, begin);
  if (end == kNone) return {last ? kHermesOpen.size() : 0, {}};
  const std::size_t close = skip_blanks(held, end);
  const std::string_view after = held.substr(close);
  const bool closed = after.starts_with(kHermesClose);
  if (!closed && !last && kHermesClose.starts_with(after)) return {};
  auto call = parse_tool_call(held.substr(begin, end - begin));
  // The end of the answer closes as well: a stop token may have taken the mark.
  if (!call || (!closed && !(last && kHermesClose.starts_with(after)))) {
    return {kHermesOpen.size(), {}};
  }
  return {closed ? close + kHermesClose.size() : held.size(), {*call}};
}

bool ToolCallReader::offered(const std::string& name) const {
  return names_.empty() ||
         std::find(names_.begin(), names_.end(), name) != names_.end();
}

ToolCallReader::Attempt ToolCallReader::attempt_llama(bool last) {
  const std::string_view held = held_;
  const bool tagged = held.starts_with(kPythonTag);
  std::size_t begin = skip_blanks(held, tagged ? kPythonTag.size() : 0);
  if (!tagged && begin < held.size() && held[begin] == ';') {
    begin = skip_blanks(held, begin + 1);
  }
  const std::size_t as_text = tagged ? kPythonTag.size() : begin + 1;
  if (begin == held.size()) return {last ? held.size() : 0, {}};
  if (held[begin] != '{') {
    std::size_t size = 0;
    const auto call = parse_python_call(held.substr(begin), last, size);
    if (call) return {begin + size, {*call}};
    return {size == 0 && !last ? 0 : as_text, {}};
  }
  if (!may_be_call(held.substr(begin))) return {as_text, {}};
  const std::size_t end = scan_.end(held, begin);
  if (end == kNone) return {last ? as_text : 0, {}};
  const auto call = parse_tool_call(held.substr(begin, end - begin));
  if (!call || !call->given || !offered(call->call.name)) return {as_text, {}};
  return {end, {*call}};
}

ToolCallReader::Attempt ToolCallReader::attempt_mistral(bool last) {
  const std::string_view held = held_;
  const std::size_t begin = skip_blanks(held, kMistralOpen.size());
  if (begin == held.size()) return {last ? held.size() : 0, {}};
  if (held[begin] != '[') return attempt_mistral_pair(begin, last);
  const std::size_t end = scan_.end(held, begin);
  if (end == kNone) return {last ? kMistralOpen.size() : 0, {}};
  auto calls = parse_tool_calls(held.substr(begin, end - begin));
  if (calls.empty()) return {kMistralOpen.size(), {}};
  return {end, std::move(calls)};
}

// name{…}, name[ARGS]{…} or name[CALL_ID]id[ARGS]{…}
ToolCallReader::Attempt ToolCallReader::attempt_mistral_pair(
    std::size_t begin,
    bool last
) {
  const std::string_view held = held_;
  const std::size_t object = held.find('{', begin);
  const std::string_view head =
      held.substr(begin, object == kNone ? kNone : object - begin);
  constexpr std::size_t kLongestHead = 256;
  const bool plain =
      head.size() <= kLongestHead && head.find_first_of("\n\"") == kNone;
  if (!plain || (object == kNone && last)) return {kMistralOpen.size(), {}};
  if (object == kNone) return {};
  const std::size_t end = scan_.end(held, object);
  if (end == kNone) return {last ? kMistralOpen.size() : 0, {}};
  auto call = parse_named_call(head, held.substr(object, end - object));
  if (!call) return {kMistralOpen.size(), {}};
  return {end, {*call}};
}

// Blanks at the edges wait: they are dropped where a call or the end follows.
void ToolCallReader::show(std::size_t size, ToolText& out) {
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    if (!hidden_[i]) text += held_[i];
  }
  if (text.empty()) return;
  if (at_edge_) {
    space_ += text;
    if (skip_blanks(text, 0) == text.size()) return;
    out.text += space_;
    space_.clear();
    at_edge_ = false;
  } else {
    out.text += text;
  }
}

void ToolCallReader::drop(std::size_t size) {
  if (size == 0) return;
  held_.erase(0, size);
  hidden_.erase(
      hidden_.begin(), hidden_.begin() + static_cast<std::ptrdiff_t>(size)
  );
  scan_ = {};
  if (teller_) *teller_ = {};
}

Json tool_call_json(const ToolCall& call, const std::string& id) {
  return {
      {"id", call.id.empty() ? id : call.id},
      {"type", "function"},
      {"function", {{"name", call.name}, {"arguments", call.arguments}}}
  };
}

ToolText read_tool_calls(
    std::string_view answer,
    ToolForm form,
    const std::vector<std::string>& names
) {
  ToolCallReader reader(form, names);
  ToolText whole = reader.feed(answer);
  ToolText rest = reader.finish();
  whole.text += rest.text;
  for (ToolCall& call : rest.calls) whole.calls.push_back(std::move(call));
  return whole;
}

}  // namespace hearth::infer
