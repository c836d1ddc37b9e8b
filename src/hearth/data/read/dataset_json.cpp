#include "hearth/data/read/dataset_json.h"

#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::data {
namespace {

constexpr std::uint64_t repeat(unsigned char byte) {
  return 0x0101010101010101ULL * byte;
}

// High bits mark the bytes of a word that may end a run of plain text: a
// quote, a backslash, a control character. May mark a later byte wrongly,
// never misses the first.
std::uint64_t special_bytes(std::uint64_t word) {
  const auto zero_in = [](std::uint64_t w) {
    return (w - repeat(1)) & ~w & repeat(0x80);
  };
  return zero_in(word ^ repeat('"')) | zero_in(word ^ repeat('\\')) |
         ((word - repeat(0x20)) & ~word & repeat(0x80));
}

// Where the run of plain string characters that begins at `at` ends.
std::size_t plain_run(std::string_view text, std::size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (const auto marks = special_bytes(word)) {
      return at + static_cast<std::size_t>(__builtin_ctzll(marks)) / 8;
    }
  }
  while (at < text.size() && text[at] != '"' && text[at] != '\\' &&
         static_cast<unsigned char>(text[at]) >= 0x20) {
    ++at;
  }
  return at;
}

bool digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

void JsonCursor::fail(std::string_view what) const {
  throw FormatError(fmt::format("column {}: {}", at_ + 1, what));
}

char JsonCursor::peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonCursor::expect(char c) {
  if (peek() != c || at_ == text_.size()) {
    fail(fmt::format("'{}' must stand here", c));
  }
  ++at_;
}

void JsonCursor::finish() {
  peek();
  if (at_ != text_.size()) fail("nothing may follow the value");
}

void JsonCursor::enter() {
  if (++depth_ > kMaxDepth) {
    fail(fmt::format("nesting must stay within {} levels", kMaxDepth));
  }
}

void JsonCursor::read_string(std::string& out) {
  expect('"');
  for (;;) {
    const std::size_t end = plain_run(text_, at_);
    out.append(text_.substr(at_, end - at_));
    at_ = end;
    if (at_ == text_.size()) fail("the string does not end");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') fail("a control character must be escaped");
    escape(&out);
  }
  ++at_;
}

void JsonCursor::skip_string() {
  expect('"');
  for (;;) {
    at_ = plain_run(text_, at_);
    if (at_ == text_.size()) fail("the string does not end");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') fail("a control character must be escaped");
    escape(nullptr);
  }
  ++at_;
}

unsigned JsonCursor::hex4() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : 'x';
    const char low = static_cast<char>(c | 0x20);
    if (digit(c)) {
      code = code * 16 + (c - '0');
    } else if (low >= 'a' && low <= 'f') {
      code = code * 16 + (low - 'a' + 10);
    } else {
      fail("\\u must have four hexadecimal digits");
    }
  }
  return code;
}

void JsonCursor::escape(std::string* out) {
  static constexpr std::string_view kFrom = "\"\\/bfnrt";
  static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
  ++at_;
  const char c = at_ < text_.size() ? text_[at_] : '\0';
  if (const auto known = kFrom.find(c); known != std::string_view::npos) {
    ++at_;
    if (out) *out += kTo[known];
    return;
  }
  if (c != 'u') fail("this escape is not one of JSON's");
  ++at_;
  unsigned code = hex4();
  if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
    const std::size_t back = at_;
    at_ += 2;
    const unsigned low = hex4();
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else {
      at_ = back;
    }
  }
  if (code >= 0xD800 && code < 0xE000) {
    code = 0xFFFD;
    ++replaced_;
  }
  if (out) text::append_utf8(*out, code);
}

std::string_view JsonCursor::number() {
  const std::size_t begin = at_;
  auto digits = [&] {
    const std::size_t from = at_;
    while (at_ < text_.size() && digit(text_[at_])) ++at_;
    if (at_ == from) fail("a digit must stand here");
  };
  auto is = [&](char c) { return at_ < text_.size() && text_[at_] == c; };
  if (is('-')) ++at_;
  if (is('0')) {
    ++at_;
  } else {
    digits();
  }
  if (is('.')) {
    ++at_;
    digits();
  }
  if (is('e') || is('E')) {
    ++at_;
    if (is('+') || is('-')) ++at_;
    digits();
  }
  return text_.substr(begin, at_ - begin);
}

void JsonCursor::word(std::string_view text) {
  if (text_.substr(at_, text.size()) != text) fail("a value must stand here");
  at_ += text.size();
}

void JsonCursor::skip_value() {
  switch (peek()) {
    case '"':
      return skip_string();
    case '{':
      return read_object([&](std::string_view) { skip_value(); });
    case '[':
      return read_array([&] { skip_value(); });
    case 't':
      return word("true");
    case 'f':
      return word("false");
    case 'n':
      return word("null");
    default:
      number();
  }
}

Json JsonCursor::read_value() {
  switch (peek()) {
    case '"': {
      std::string text;
      read_string(text);
      return text;
    }
    case '{': {
      Json object = Json::object();
      read_object([&](std::string_view key) {
        std::string name(key);
        object[name] = read_value();
      });
      return object;
    }
    case '[': {
      Json array = Json::array();
      read_array([&] { array.push_back(read_value()); });
      return array;
    }
    case 't':
      return word("true"), Json(true);
    case 'f':
      return word("false"), Json(false);
    case 'n':
      return word("null"), Json(nullptr);
    default: {
      // Out of a double's range is the one thing the grammar lets through.
      Json value = Json::parse(number(), nullptr, false);
      if (value.is_discarded()) fail("the number is out of range");
      return value;
    }
  }
}

void JsonCursor::read_object(FunctionRef<void(std::string_view)> member) {
  expect('{');
  enter();
  if (peek() != '}') {
    for (;;) {
      if (peek() != '"') fail("a key must stand here");
      key_.clear();
      read_string(key_);
      expect(':');
      member(key_);
      if (peek() != ',') break;
      ++at_;
    }
  }
  expect('}');
  --depth_;
}

void JsonCursor::read_array(FunctionRef<void()> item) {
  expect('[');
  enter();
  if (peek() != ']') {
    for (;;) {
      item();
      if (peek() != ',') break;
      ++at_;
    }
  }
  expect(']');
  --depth_;
}

}  // namespace hearth::data
