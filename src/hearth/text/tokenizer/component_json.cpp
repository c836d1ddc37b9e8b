#include "hearth/text/tokenizer/component_json.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

[[noreturn]] void wrong(
    std::string_view what,
    std::string_view key,
    std::string_view wanted
) {
  throw FormatError(fmt::format("{}: \"{}\" must be {}", what, key, wanted));
}

const Json* field(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto it = json.find(key);
  return it == json.end() || it->is_null() ? nullptr : &*it;
}

}  // namespace

std::string component_type(const Json& json, std::string_view what) {
  const Json* type = field(json, "type");
  if (!type || !type->is_string()) wrong(what, "type", "a string");
  return type->get<std::string>();
}

void unknown_type(std::string_view what, std::string_view type) {
  throw FormatError(fmt::format("{} type \"{}\" is not known", what, type));
}

const Json& array_field(
    const Json& json,
    std::string_view what,
    const char* key
) {
  const Json* value = field(json, key);
  if (!value || !value->is_array()) wrong(what, key, "an array");
  return *value;
}

std::string string_field(
    const Json& json,
    std::string_view what,
    const char* key
) {
  const Json* value = field(json, key);
  if (!value || !value->is_string()) wrong(what, key, "a string");
  return value->get<std::string>();
}

bool bool_field(
    const Json& json,
    std::string_view what,
    const char* key,
    bool fallback
) {
  const Json* value = field(json, key);
  if (!value) return fallback;
  if (!value->is_boolean()) wrong(what, key, "true or false");
  return value->get<bool>();
}

std::int64_t int_field(
    const Json& json,
    std::string_view what,
    const char* key,
    std::int64_t fallback
) {
  const Json* value = field(json, key);
  if (!value) return fallback;
  if (!value->is_number_integer()) wrong(what, key, "a whole number");
  return value->get<std::int64_t>();
}

std::string char_field(
    const Json& json,
    std::string_view what,
    const char* key
) {
  std::string value = string_field(json, what, key);
  if (value.empty() || utf8_size(value[0]) != value.size()) {
    wrong(what, key, "one character");
  }
  return value;
}

std::unique_ptr<Matcher> pattern_field(
    const Json& json,
    std::string_view what,
    const char* key
) {
  const Json* pattern = field(json, key);
  if (pattern && field(*pattern, "String")) {
    return make_literal_matcher(string_field(*pattern, what, "String"));
  }
  if (!pattern || !field(*pattern, "Regex")) {
    wrong(what, key, "{\"String\": ...} or {\"Regex\": ...}");
  }
  return make_regex_matcher(string_field(*pattern, what, "Regex"));
}

}  // namespace hearth::text
