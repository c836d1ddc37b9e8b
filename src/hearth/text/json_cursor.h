#pragma once
// A strict JSON reader that walks through a text of known shape without
// building a tree: for a vocabulary of many megabytes, and for one line of a
// data set at a time. What nobody asks for is checked and stepped over, never
// copied. It accepts what base/json.h accepts (but for NUL bytes after the
// value); depth and position are checked.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "hearth/base/json.h"

namespace hearth::text {

class JsonCursor {
 public:
  static constexpr int kMaxDepth = 64;

  // Reads one line, which must be valid UTF-8. Escaped halves of surrogate
  // pairs, which real data has, become U+FFFD. Errors say "column N: what".
  explicit JsonCursor(std::string_view line) : text_(line) {}
  // Reads a file as it is: bytes that are no text are refused. Errors say its
  // name and line too. Both views must outlive the cursor.
  JsonCursor(std::string_view text, std::string_view file)
      : text_(text), file_(file), strict_text_(true) {}

  // The first character of the next value; 0 at the end.
  char peek();

  // begin_object(); while (next_key(key)) { read or skip the value }
  void begin_object() { open('{'); }
  bool next_key(std::string& key);
  // begin_array(); while (next_item()) { read or skip the item }
  void begin_array() { open('['); }
  bool next_item() { return next(']'); }

  // Appends the text of a string to out.
  void read_string(std::string& out);
  std::string string();
  std::int64_t integer();
  double number();
  bool boolean();
  // Any value, built.
  Json value();
  // Any value, checked and stepped over: its own text.
  std::string_view skip();
  // Throws unless only white space is left.
  void end();

  // Escaped surrogates that were replaced so far.
  std::size_t replaced() const { return replaced_; }
  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = position; }
  // Throws FormatError for the place that was reached.
  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::string_view text_, file_;
  bool strict_text_ = false;
  std::size_t at_ = 0, replaced_ = 0;
  int depth_ = 0;
  bool first_ = false;  // nothing was read yet in the innermost bracket
  std::string key_;     // of an object that is stepped over

  void open(char bracket);
  bool next(char closing);
  void expect(char c);
  void skip_string();
  std::size_t plain_end() const;
  std::string_view number_text();
  void word(std::string_view text);
  void escape(std::string* out);
  unsigned hex4();
};

}  // namespace hearth::text
