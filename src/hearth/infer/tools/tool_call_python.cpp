// Tool calls as Python writes them, `name(key=value)`.
#include <cstdlib>
#include <utility>

#include "hearth/base/error.h"
#include "hearth/infer/tools/tool_call_parse_impl.h"

namespace hearth::infer {
namespace {

struct Incomplete {};
struct Broken {};

// Python's literals as JSON. Throws Incomplete at the end of the text.
class Literals {
 public:
  explicit Literals(std::string_view text) : text_(text) {}

  ToolCall call() {
    ToolCall made;
    made.name = name();
    expect(".call(");
    Json arguments = Json::object();
    skip();
    while (peek() != ')') {
      const std::string key = name();
      skip();
      expect("=");
      arguments[key] = value(0);
      skip();
      if (peek() != ')') expect(",");
      skip();
    }
    ++at_;
    made.arguments = to_json_line(arguments);
    return made;
  }
  std::size_t at() const { return at_; }

 private:
  char peek() const {
    if (at_ >= text_.size()) throw Incomplete();
    return text_[at_];
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n'))
      ++at_;
  }
  void expect(std::string_view word) {
    for (const char c : word) {
      if (peek() != c) throw Broken();
      ++at_;
    }
  }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
  }
  std::string name() {
    const std::size_t first = at_;
    while (is_name(peek())) ++at_;
    if (at_ == first) throw Broken();
    return std::string(text_.substr(first, at_ - first));
  }

  Json value(int depth) {
    constexpr int kMaxDepth = 32;
    if (depth > kMaxDepth) throw Broken();
    skip();
    const char c = peek();
    if (c == '"' || c == '\'') return quoted(c);
    if (c == '[') return list(depth);
    if (c == '{') return dictionary(depth);
    if (c == '-' || (c >= '0' && c <= '9')) return number();
    const std::string word = name();
    if (word == "True" || word == "true") return true;
    if (word == "False" || word == "false") return false;
    if (word == "None" || word == "null") return nullptr;
    throw Broken();
  }

  std::string quoted(char quote) {
    std::string made;
    for (++at_; peek() != quote; ++at_) {
      if (text_[at_] != '\\') {
        made += text_[at_];
        continue;
      }
      ++at_;
      const char c = peek();
      made += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    ++at_;
    return made;
  }

  Json number() {
    const std::size_t first = at_;
    constexpr std::string_view kDigits = "+-0123456789.eE_";
    while (kDigits.find(peek()) != std::string_view::npos) ++at_;
    try {
      return parse_json(text_.substr(first, at_ - first), "number");
    } catch (const FormatError&) {
      throw Broken();
    }
  }

  Json list(int depth) {
    Json made = Json::array();
    ++at_;
    skip();
    while (peek() != ']') {
      made.push_back(value(depth + 1));
      skip();
      if (peek() != ']') expect(",");
      skip();
    }
    ++at_;
    return made;
  }

  Json dictionary(int depth) {
    Json made = Json::object();
    ++at_;
    skip();
    while (peek() != '}') {
      const Json key = value(depth + 1);
      if (!key.is_string()) throw Broken();
      skip();
      expect(":");
      made[key.get<std::string>()] = value(depth + 1);
      skip();
      if (peek() != '}') expect(",");
      skip();
    }
    ++at_;
    return made;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<ToolCall> parse_python_call(
    std::string_view text,
    bool last,
    std::size_t& size
) {
  Literals literals(text);
  try {
    ToolCall call = literals.call();
    size = literals.at();
    return call;
  } catch (const Incomplete&) {
    size = last ? 1 : 0;
  } catch (const Broken&) {
    size = 1;
  }
  return std::nullopt;
}

}  // namespace hearth::infer
