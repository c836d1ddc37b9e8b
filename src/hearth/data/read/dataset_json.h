#pragma once
// A strict JSON reader for one line at a time, quick where a dataset is big:
// members that nobody asked for are checked and stepped over, never copied.
// Accepts what base/json.h accepts (but for NUL bytes after the value), and
// escaped lone surrogates, which real data has: they become U+FFFD.
#include <string>
#include <string_view>

#include "hearth/base/function_ref.h"
#include "hearth/base/json.h"

namespace hearth::data {

class JsonCursor {
 public:
  static constexpr int kMaxDepth = 64;

  // The text must be valid UTF-8 and outlive the cursor.
  explicit JsonCursor(std::string_view text) : text_(text) {}

  // The first character of the next value; 0 at the end.
  char peek();
  // Appends the text of a string value to out.
  void read_string(std::string& out);
  // Any value, built.
  Json read_value();
  // Any value, stepped over.
  void skip_value();
  // Calls member(key) for each member; it must read or skip the value.
  void read_object(FunctionRef<void(std::string_view key)> member);
  void read_array(FunctionRef<void()> item);
  // Throws unless only white space is left.
  void finish();

  // Escaped surrogates that were replaced so far.
  std::size_t replaced() const { return replaced_; }
  // Throws FormatError "column N: what".
  [[noreturn]] void fail(std::string_view what) const;

 private:
  std::string_view text_;
  std::size_t at_ = 0, replaced_ = 0;
  int depth_ = 0;
  std::string key_;

  void expect(char c);
  void skip_string();
  std::string_view number();
  void word(std::string_view text);
  void escape(std::string* out);
  unsigned hex4();
  void enter();
};

}  // namespace hearth::data
