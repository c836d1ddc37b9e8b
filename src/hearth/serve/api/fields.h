#pragma once
// Reads the keys of one JSON object of a request. A key that nobody asked for,
// or a value of the wrong type or range, is an ApiError that names it: no
// option is ever ignored.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/function_ref.h"
#include "hearth/base/json.h"

namespace hearth::serve {

// Bytes to a JSON object with no key twice, bounded in depth, keys and values
// before they are stored. ApiError 400 where it is none.
Json parse_request_json(std::string_view body);

class Fields {
 public:
  // path is what the object is called in errors, such as "messages[2]"; empty
  // for the request itself. ApiError unless it is an object.
  Fields(const Json& object, std::string path);

  // The value of a key, or null where it is absent or null. Every call marks
  // the key as known.
  const Json* find(std::string_view key);
  const Json& need(std::string_view key);

  std::optional<std::string> text(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key, double low, double high);
  std::optional<std::int64_t> integer(
      std::string_view key,
      std::int64_t low,
      std::int64_t high
  );
  std::string need_text(std::string_view key);

  // The key may be there only with this value, or null: what it would ask for
  // beyond that is not offered.
  void only(std::string_view key, const Json& value, std::string_view why);

  // Accepts these keys without reading them: they change nothing here.
  void pass_over(std::initializer_list<const char*> keys);

  // Every key has been asked for; one that is null counts as absent. ApiError
  // names the first that was not, and the nearest that is known.
  void finish() const;

  std::string name_of(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, std::string_view what) const;

 private:
  const Json& object_;
  std::string path_;
  std::vector<std::string> known_;
};

// A text, or the texts of a list of parts, joined: each part is read by
// `part_text`, which is told what the part is called in errors. ApiError where
// it is neither.
std::string joined_text(
    const Json& value,
    const std::string& where,
    FunctionRef<std::string(const Json& part, const std::string& where)>
        part_text
);

// A value for an error message, cut short.
std::string shown(const Json& value);

}  // namespace hearth::serve
