#include "hearth/text/json_cursor.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/ascii.h"
#include "hearth/base/error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
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
  const std::string_view before = text_.substr(0, at_);
  const std::size_t line = before.rfind('\n') + 1;  // 0 where there is none
  const std::string place =
      fmt::format("column {}: {}", at_ - (file_.empty() ? 0 : line) + 1, what);
  if (file_.empty()) throw FormatError(place);
  throw FormatError::at(file_, 1 + std::ranges::count(before, '\n'), place);
}

char JsonCursor::peek() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' ||
                                text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonCursor::expect(char c) {
  const bool end = peek() == '\0' && at_ == text_.size();
  if (end) fail(fmt::format("'{}' must stand here, got the end", c));
  if (text_[at_] != c) fail(fmt::format("'{}' must stand here", c));
  ++at_;
}

void JsonCursor::end() {
  peek();
  if (at_ != text_.size()) fail("nothing may follow the value");
}

void JsonCursor::open(char bracket) {
  expect(bracket);
  if (++depth_ > kMaxDepth) {
    fail(fmt::format("nesting must stay within {} levels", kMaxDepth));
  }
  first_ = true;
}

bool JsonCursor::next(char closing) {
  const char got = peek();
  if (got == closing) {
    ++at_;
    --depth_;
    first_ = false;
    return false;
  }
  if (!std::exchange(first_, false)) {
    if (got != ',') fail(fmt::format("',' or '{}' must stand here", closing));
    ++at_;
  }
  return true;
}

bool JsonCursor::next_key(std::string& key) {
  if (!next('}')) return false;
  if (peek() != '"') fail("a key must stand here");
  key.clear();
  read_string(key);
  expect(':');
  return true;
}

// Where the run of plain characters of a string that begins here ends.
std::size_t JsonCursor::plain_end() const {
  const std::size_t end = plain_run(text_, at_);
  if (strict_text_ && !is_valid_utf8(text_.substr(at_, end - at_))) {
    fail("the string is not valid UTF-8");
  }
  return end;
}

void JsonCursor::read_string(std::string& out) {
  if (peek() != '"') fail("a string must stand here");
  ++at_;
  for (;;) {
    const std::size_t end = plain_end();
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
    at_ = plain_end();
    if (at_ == text_.size()) fail("the string does not end");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') fail("a control character must be escaped");
    escape(nullptr);
  }
  ++at_;
}

std::string JsonCursor::string() {
  std::string out;
  read_string(out);
  return out;
}

unsigned JsonCursor::hex4() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    const char c = at_ < text_.size() ? text_[at_] : 'x';
    const int value = hex_digit(static_cast<unsigned char>(c));
    if (value < 0) fail("\\u must have four hexadecimal digits");
    code = code * 16 + static_cast<unsigned>(value);
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
    if (strict_text_) fail("a \\u escape is half of a surrogate pair");
    code = 0xFFFD;
    ++replaced_;
  }
  if (out) append_utf8(*out, code);
}

std::string_view JsonCursor::number_text() {
  peek();
  const std::size_t begin = at_;
  auto digits = [&] {
    const std::size_t from = at_;
    while (at_ < text_.size() && digit(text_[at_])) ++at_;
    if (at_ == from) fail("a number must stand here");
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

std::int64_t JsonCursor::integer() {
  const std::string_view text = number_text();
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) fail("must be a whole number");
  return value;
}

double JsonCursor::number() {
  const std::string_view text = number_text();
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool JsonCursor::boolean() {
  const bool value = peek() == 't';
  word(value ? "true" : "false");
  return value;
}

void JsonCursor::word(std::string_view text) {
  if (text_.substr(at_, text.size()) != text) fail("a value must stand here");
  at_ += text.size();
}

std::string_view JsonCursor::skip() {
  const char kind = peek();
  const std::size_t begin = at_;
  switch (kind) {
    case '"':
      skip_string();
      break;
    case '{':
      for (begin_object(); next_key(key_);) skip();
      break;
    case '[':
      for (begin_array(); next_item();) skip();
      break;
    case 't':
      word("true");
      break;
    case 'f':
      word("false");
      break;
    case 'n':
      word("null");
      break;
    default:
      number_text();
  }
  return text_.substr(begin, at_ - begin);
}

Json JsonCursor::value() {
  switch (peek()) {
    case '"':
      return string();
    case '{': {
      Json object = Json::object();
      std::string key;
      for (begin_object(); next_key(key);) object[key] = value();
      return object;
    }
    case '[': {
      Json array = Json::array();
      for (begin_array(); next_item();) array.push_back(value());
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
      Json number = Json::parse(number_text(), nullptr, false);
      if (number.is_discarded()) fail("the number is out of range");
      return number;
    }
  }
}

}  // namespace hearth::text
