#pragma once
// A pull reader for large JSON documents whose shape is known: no tree is
// built, and strings go where the caller wants them. Small values can be cut
// out whole and given to parse_json(). Depth and position are checked; errors
// name file, line and column.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::text {

class JsonReader {
 public:
  // Both views must outlive the reader.
  JsonReader(std::string_view text, std::string_view name);

  enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull };
  Kind peek();

  // begin_object(); while (next_key(key)) { read or skip the value }
  void begin_object() { open('{'); }
  bool next_key(std::string& key);
  // begin_array(); while (next_item()) { read or skip the item }
  void begin_array() { open('['); }
  bool next_item();

  // Appends the unescaped string.
  void append_string(std::string& out);
  std::string string();
  std::int64_t integer();
  double number();
  bool boolean();
  // The value's own text.
  std::string_view skip();
  // Nothing but white space may follow.
  void end();

  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = position; }
  // Throws FormatError for the place reached.
  [[noreturn]] void fail(std::string_view what) const;

 private:
  void open(char bracket);
  bool next(char closing);
  void space();
  char at(std::string_view wanted);
  void word(std::string_view text);
  void skip_string();
  std::uint32_t hex4();
  void append_escape(std::string& out);
  std::string_view number_text();

  std::string_view text_, name_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool first_ = false;  // nothing was read yet in the innermost bracket
};

}  // namespace hearth::text
