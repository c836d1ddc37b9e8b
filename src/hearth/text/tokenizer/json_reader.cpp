#include "hearth/text/tokenizer/json_reader.h"

#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {
constexpr int kMaxDepth = 64;
}

JsonReader::JsonReader(std::string_view text, std::string_view name)
    : text_(text), name_(name) {}

void JsonReader::fail(std::string_view what) const {
  const std::string_view before = text_.substr(0, at_);
  long line = 1;
  for (char c : before) line += c == '\n';
  const std::size_t start = before.rfind('\n');
  const std::size_t column =
      at_ - (start == std::string_view::npos ? 0 : start + 1) + 1;
  throw FormatError::at(
      name_, line, fmt::format("column {}: {}", column, what)
  );
}

void JsonReader::space() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' ||
                                text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

char JsonReader::at(std::string_view wanted) {
  space();
  if (at_ >= text_.size()) {
    fail(fmt::format("expected {}, got the end of the file", wanted));
  }
  return text_[at_];
}

JsonReader::Kind JsonReader::peek() {
  switch (at("a value")) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    default:
      return Kind::kNumber;
  }
}

void JsonReader::open(char bracket) {
  const char got = at(bracket == '{' ? "an object" : "an array");
  if (got != bracket) {
    fail(bracket == '{' ? "expected an object" : "expected an array");
  }
  if (++depth_ > kMaxDepth) fail("nested too deeply");
  ++at_;
  first_ = true;
}

bool JsonReader::next(char closing) {
  const char got = at(closing == '}' ? "',' or '}'" : "',' or ']'");
  if (got == closing) {
    ++at_;
    --depth_;
    first_ = false;
    return false;
  }
  if (!first_) {
    if (got != ',')
      fail(closing == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    ++at_;
  }
  first_ = false;
  return true;
}

bool JsonReader::next_key(std::string& key) {
  if (!next('}')) return false;
  key.clear();
  append_string(key);
  if (at("':'") != ':') fail("expected ':'");
  ++at_;
  return true;
}

bool JsonReader::next_item() {
  return next(']');
}

void JsonReader::append_string(std::string& out) {
  if (at("a string") != '"') fail("expected a string");
  ++at_;
  while (true) {
    std::size_t i = at_;
    while (i < text_.size() && text_[i] != '"' && text_[i] != '\\' &&
           static_cast<unsigned char>(text_[i]) >= 0x20) {
      ++i;
    }
    const std::string_view plain = text_.substr(at_, i - at_);
    if (!is_valid_utf8(plain)) fail("the string is not valid UTF-8");
    out += plain;
    at_ = i;
    if (i >= text_.size()) fail("the string does not end");
    if (text_[i] == '"') break;
    if (text_[i] != '\\') fail("control character in a string");
    append_escape(out);
  }
  ++at_;
}

std::uint32_t JsonReader::hex4() {
  std::uint32_t value = 0;
  if (at_ + 4 > text_.size()) fail("the string does not end");
  const char* end = text_.data() + at_ + 4;
  const auto [stop, error] =
      std::from_chars(text_.data() + at_, end, value, 16);
  if (error != std::errc{} || stop != end) fail("bad \\u escape");
  at_ += 4;
  return value;
}

void JsonReader::append_escape(std::string& out) {
  if (at_ + 2 > text_.size()) fail("the string does not end");
  const char c = text_[at_ + 1];
  at_ += 2;
  switch (c) {
    case '"':
    case '\\':
    case '/':
      out += c;
      return;
    case 'b':
      out += '\b';
      return;
    case 'f':
      out += '\f';
      return;
    case 'n':
      out += '\n';
      return;
    case 'r':
      out += '\r';
      return;
    case 't':
      out += '\t';
      return;
    case 'u':
      break;
    default:
      fail("bad escape in a string");
  }
  std::uint32_t value = hex4();
  if (value >= 0xD800 && value < 0xE000) {
    if (value >= 0xDC00 || text_.substr(at_, 2) != "\\u") {
      fail("a \\u escape is half of a surrogate pair");
    }
    at_ += 2;
    const std::uint32_t low = hex4();
    if (low < 0xDC00 || low >= 0xE000) {
      fail("a \\u escape is half of a surrogate pair");
    }
    value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(out, value);
}

std::string JsonReader::string() {
  std::string out;
  append_string(out);
  return out;
}

std::string_view JsonReader::number_text() {
  at("a number");
  std::size_t end = at_;
  while (end < text_.size() && std::strchr("+-.0123456789eE", text_[end]) &&
         text_[end] != '\0') {
    ++end;
  }
  if (end == at_) fail("expected a number");
  return text_.substr(at_, end - at_);
}

std::int64_t JsonReader::integer() {
  const std::string_view text = number_text();
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end) fail("expected a whole number");
  at_ += text.size();
  return value;
}

double JsonReader::number() {
  const std::string_view text = number_text();
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::invalid_argument || stop != end) {
    fail("expected a number");
  }
  at_ += text.size();
  return value;
}

void JsonReader::word(std::string_view text) {
  if (text_.substr(at_, text.size()) != text) {
    fail(fmt::format("expected {}", text));
  }
  at_ += text.size();
}

bool JsonReader::boolean() {
  const bool value = at("true or false") == 't';
  word(value ? "true" : "false");
  return value;
}

void JsonReader::skip_string() {
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') {
    at_ += text_[at_] == '\\' ? 2 : 1;
  }
  if (at_ >= text_.size()) {
    at_ = text_.size();
    fail("the string does not end");
  }
  ++at_;
}

std::string_view JsonReader::skip() {
  const Kind kind = peek();
  const std::size_t begin = at_;
  std::string key;
  switch (kind) {
    case Kind::kObject:
      for (begin_object(); next_key(key);) skip();
      break;
    case Kind::kArray:
      for (begin_array(); next_item();) skip();
      break;
    case Kind::kString:
      skip_string();
      break;
    case Kind::kNumber:
      number();
      break;
    case Kind::kBool:
      boolean();
      break;
    case Kind::kNull:
      word("null");
      break;
  }
  return text_.substr(begin, at_ - begin);
}

void JsonReader::end() {
  space();
  if (at_ < text_.size()) fail("something follows the document");
}

}  // namespace hearth::text
