#include "hearth/data/read/dataset_array.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/json_cursor.h"

namespace hearth::data {
namespace {

bool is_list_name(std::string_view key, const RecordFields& f) {
  if (key == f.messages || key == f.tools) return false;
  for (const char* name :
       {"data", "train", "rows", "examples", "records", "instances", "items"}) {
    if (key == name) return true;
  }
  return false;
}

bool is_list_or_object(char first) {
  return first == '[' || first == '{';
}

// The member of an object that is the list of records.
std::optional<std::size_t> member_list(
    std::string_view text,
    const RecordFields& fields
) try {
  text::JsonCursor cursor(text);
  std::string key;
  for (cursor.begin_object(); cursor.next_key(key);) {
    const char first = cursor.peek();
    const std::size_t at = cursor.position();
    if (first == '[' && is_list_name(key, fields)) {
      cursor.seek(at + 1);
      const char item = cursor.peek();
      if (item == '{' || item == ']') return at;
      return std::nullopt;
    }
    if (is_list_or_object(first)) return std::nullopt;
    cursor.skip();
  }
  return std::nullopt;
} catch (const FormatError&) {
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> list_of_records(
    std::string_view text,
    const RecordFields& fields
) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::size_t at = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  at = text.find_first_not_of(" \t\r\n", at);
  if (at == std::string_view::npos) return std::nullopt;
  if (text[at] == '[') return at;
  if (text[at] != '{') return std::nullopt;
  const auto inside = member_list(text.substr(at), fields);
  return inside ? std::optional(at + *inside) : std::nullopt;
}

std::string wrong_after_list(std::string_view rest, bool member) try {
  const auto from = rest.find_first_not_of(" \t\r\n");
  if (!member) {
    return from == std::string_view::npos ? "" : "nothing may follow the array";
  }
  if (from == std::string_view::npos) return "the object does not end";
  const bool more = rest[from] == ',';
  const std::string object = "{" + std::string(rest.substr(from + more));
  text::JsonCursor cursor(object);
  std::string key;
  for (cursor.begin_object(); cursor.next_key(key);) {
    const bool several = is_list_or_object(cursor.peek());
    if (cursor.skip().size() > 2 && several) {
      return fmt::format(
          "one list of records is read, and \"{}\" holds more: give each list "
          "a "
          "file",
          key
      );
    }
  }
  cursor.end();
  return {};
} catch (const FormatError&) {
  return "nothing but members may follow the list of records";
}

}  // namespace hearth::data
