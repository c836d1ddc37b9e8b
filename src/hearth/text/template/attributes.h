#pragma once
// value.name, value[key] and value[a:b:c], as jinja2's immutable sandbox gives
// them: an attribute first or an element first, Undefined when there is none,
// and nothing that changes a value or starts with an underscore.
#include <optional>
#include <string_view>

#include "hearth/text/template/value.h"

namespace hearth::text::jinja {

Value get_attribute(const Value& value, std::string_view name);
Value get_item(const Value& value, const Value& key);
// Bounds may be None.
Value get_slice(
    const Value& value,
    const Value& start,
    const Value& stop,
    const Value& step
);
// A method of a built-in type, bound to its value; nothing when the type has
// no such method.
std::optional<Value> bind_method(const Value& value, std::string_view name);

// Parameters of a function, matched against a call. Missing ones are absent.
class Parameters {
 public:
  // `names` in order, separated by spaces; "*" in front means by name only.
  Parameters(
      std::string_view function,
      std::string_view names,
      Arguments& arguments
  );
  bool has(std::size_t index) const { return values_[index].has_value(); }
  const Value& at(std::size_t index) const;
  Value get(std::size_t index, Value otherwise) const;
  std::int64_t integer(std::size_t index, std::int64_t otherwise) const;
  const std::string& text(std::size_t index) const;

 private:
  std::string function_;
  std::vector<std::optional<Value>> values_;
};

}  // namespace hearth::text::jinja
