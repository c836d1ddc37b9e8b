#include "hearth/infer/tools/tool_call_pieces.h"

#include <algorithm>
#include <optional>

#include "hearth/infer/tools/tool_call_parse_impl.h"

namespace hearth::infer {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view mark_of(ToolForm form, std::string_view held) {
  constexpr std::string_view kPythonTag = "<|python_tag|>";
  if (form != ToolForm::llama) return tool_call_mark(form);
  return held.starts_with(kPythonTag) ? kPythonTag : std::string_view();
}

// Reads what JSON must have at a place, blanks before it aside. One that runs
// out of text is short; one that finds something else is wrong.
class HeadReader {
 public:
  explicit HeadReader(std::string_view text) : text_(text) {}

  bool symbol(char wanted) {
    skip();
    if (at_ == text_.size()) return stop(true);
    if (text_[at_] != wanted) return stop(false);
    ++at_;
    return true;
  }
  // A string without escapes.
  std::optional<std::string_view> string() {
    if (!symbol('"')) return {};
    const auto end = text_.find_first_of("\"\\", at_);
    if (end == text_.npos || text_[end] != '"') {
      stop(end == text_.npos);
      return {};
    }
    const auto out = text_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }
  void wrong() { stop(false); }
  bool is_short() const { return short_; }
  std::size_t at() const { return at_; }

 private:
  void skip() {
    at_ = std::min(text_.find_first_not_of(kBlanks, at_), text_.size());
  }
  bool stop(bool is_short) {
    short_ = is_short;
    return false;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool short_ = false;
};

}  // namespace

// {"name": "NAME", "arguments": {
ToolCallTeller::Head ToolCallTeller::read_head(std::string_view object) {
  HeadReader reader(object);
  Head out;
  const auto fill = [&] {
    if (!reader.symbol('{')) return false;
    const auto first = reader.string();
    if (!first) return false;
    if (*first != "name") return reader.wrong(), false;
    if (!reader.symbol(':')) return false;
    const auto name = reader.string();
    if (!name || !reader.symbol(',')) return false;
    const auto key = reader.string();
    if (!key) return false;
    if (*key != "arguments" && *key != "parameters") {
      return reader.wrong(), false;
    }
    out.call.name = *name;
    return reader.symbol(':') && reader.symbol('{');
  };
  if (fill()) {
    out.size = reader.at() - 1;
  } else {
    out.hopeless = !reader.is_short();
  }
  return out;
}

// NAME[ARGS]{
ToolCallTeller::Head ToolCallTeller::read_pair_head(std::string_view text) {
  Head out;
  const auto open = text.find('{');
  if (open == text.npos) return out;
  const auto call = parse_named_call(text.substr(0, open), "{}");
  if (call) {
    out.call = *call;
    out.size = open;
  } else {
    out.hopeless = true;
  }
  return out;
}

void ToolCallTeller::begin(ToolForm form, std::string_view held) {
  at_ = mark_of(form, held).size();
  const auto first = held.find_first_not_of(kBlanks, at_);
  if (first == held.npos) return;
  pair_ = form == ToolForm::mistral && held[first] != '[';
  at_ = first + (form == ToolForm::mistral && !pair_ ? 1 : 0);
  phase_ = Phase::object;
}

void ToolCallTeller::take_head(
    const Head& head,
    const std::vector<std::string>& names,
    std::vector<ToolCallPiece>& out
) {
  const bool offered =
      names.empty() || std::ranges::find(names, head.call.name) != names.end();
  if (head.hopeless || (head.size > 0 && !offered)) phase_ = Phase::over;
  if (head.size == 0 || !offered) return;
  at_ += head.size;
  out.push_back({.begins = true, .name = head.call.name, .id = head.call.id});
  ++told_;
  depth_ = 0;
  quoted_ = escaped_ = false;
  phase_ = Phase::arguments;
}

bool ToolCallTeller::scan(std::string_view held) {
  for (; at_ < held.size(); ++at_) {
    const char c = held[at_];
    if (escaped_) {
      escaped_ = false;
    } else if (quoted_) {
      escaped_ = c == '\\';
      quoted_ = c != '"';
    } else if (c == '"') {
      quoted_ = true;
    } else if (c == '{' || c == '[') {
      ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ <= 0) {
      ++at_;
      return true;
    }
  }
  return false;
}

void ToolCallTeller::look(
    ToolForm form,
    std::string_view held,
    const std::vector<std::string>& names,
    std::vector<ToolCallPiece>& out
) {
  if (phase_ == Phase::start) begin(form, held);
  while (phase_ != Phase::start && phase_ != Phase::over) {
    if (phase_ == Phase::object) {
      // Between two of them.
      const auto next = held.find_first_not_of(" \t\r\n,;", at_);
      if (next == held.npos) return;
      at_ = next;
      const auto rest = held.substr(at_);
      take_head(pair_ ? read_pair_head(rest) : read_head(rest), names, out);
      if (phase_ == Phase::object) return;
    } else if (phase_ == Phase::arguments) {
      const auto from = at_;
      const bool whole = scan(held);
      const auto more = held.substr(from, at_ - from);
      if (!more.empty()) out.push_back({.arguments = std::string(more)});
      if (!whole) return;
      out.push_back({.ends = true});
      phase_ = pair_ ? Phase::over : Phase::rest;
      depth_ = 1;
    } else {
      if (!scan(held)) return;
      phase_ = form == ToolForm::mistral ? Phase::object : Phase::over;
    }
  }
}

void ToolCallTeller::end(std::vector<ToolCallPiece>& out) {
  if (phase_ == Phase::arguments) out.push_back({.ends = true});
  phase_ = Phase::over;
}

}  // namespace hearth::infer
