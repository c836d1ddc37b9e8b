#pragma once
// Python's meaning of values: truth, text, equality, order, arithmetic. Fails
// with Python's own messages, since users search for those.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/text/template/value.h"

namespace hearth::text::jinja {

bool truthy(const Value& value);
// "str", "NoneType", "dict" ...
std::string_view type_name(const Value& value);
// How jinja2 names an object in "... has no attribute": "dict object", "None".
std::string holder_name(const Value& value);

// repr() of a str.
std::string quote(std::string_view text);
std::string float_repr(double value);
// str(): what {{ value }} prints.
std::string str(const Value& value);
std::string repr(const Value& value);

bool equal(const Value& a, const Value& b);
// One of "<", "<=", ">", ">=".
bool ordered(std::string_view op, const Value& a, const Value& b);
bool contains(const Value& container, const Value& item);
std::int64_t length(const Value& value);
// All items of an iterable; a generator is spent by it.
std::vector<Value> items_of(const Value& value);
bool is_iterable(const Value& value);
// Fails on what cannot be a key: lists and dicts.
void check_hashable(const Value& value);

// One of + - * / // % **.
Value arithmetic(std::string_view op, const Value& a, const Value& b);
Value negate(const Value& value);
// str % arguments.
std::string percent_format(std::string_view format, const Value& arguments);
// str.format with the fields templates use: {}, {0}, {name}, attributes and
// elements of them, and !r / !s. Format specifications are refused.
std::string brace_format(std::string_view format, const Arguments& arguments);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  bool multiline = false;  // indent was given
  std::string indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};
// json.dumps.
std::string to_json(const Value& value, const JsonStyle& style);

[[noreturn]] void fail_undefined(const Undefined& undefined);
inline void require_defined(const Value& value) {
  if (value.is_undefined()) fail_undefined(value.undefined());
}

}  // namespace hearth::text::jinja
