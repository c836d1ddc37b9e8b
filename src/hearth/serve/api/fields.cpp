#include "hearth/serve/api/fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/spelling.h"
#include "hearth/serve/api/api_error.h"

namespace hearth::serve {
std::string shown(const Json& value) {
  constexpr std::size_t kShown = 60;
  std::string text = to_json_line(value);
  if (text.size() <= kShown) return text;
  // The text is not cut in the middle of a character.
  std::size_t end = kShown;
  while (end > 0 && (text[end] & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

Fields::Fields(const Json& object, std::string path)
    : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  throw ApiError(
      400, fmt::format("{} must be an object, got {}", path_, shown(object)),
      path_
  );
}

std::string Fields::name_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void Fields::fail(std::string_view key, std::string_view what) const {
  const std::string name = name_of(key);
  throw ApiError(400, fmt::format("'{}' {}", name, what), name);
}

const Json* Fields::find(std::string_view key) {
  known_.emplace_back(key);
  const auto at = object_.find(std::string(key));
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

const Json& Fields::need(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "is missing");
  return *value;
}

std::optional<std::string> Fields::text(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_string()) {
    fail(key, fmt::format("must be a string, got {}", shown(*value)));
  }
  return value->get<std::string>();
}

std::string Fields::need_text(std::string_view key) {
  auto value = text(key);
  if (!value) fail(key, "is missing");
  return *std::move(value);
}

std::optional<bool> Fields::boolean(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_boolean()) {
    fail(key, fmt::format("must be true or false, got {}", shown(*value)));
  }
  return value->get<bool>();
}

std::optional<double> Fields::number(
    std::string_view key,
    double low,
    double high
) {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const double got = value->is_number() ? value->get<double>() : NAN;
  if (!(got >= low && got <= high)) {
    fail(
        key,
        fmt::format(
            "must be a number from {} to {}, got {}", low, high, shown(*value)
        )
    );
  }
  return got;
}

std::optional<std::int64_t> Fields::integer(
    std::string_view key,
    std::int64_t low,
    std::int64_t high
) {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const bool fits =
      value->is_number_integer() && (!value->is_number_unsigned() ||
                                     value->get<std::uint64_t>() <= INT64_MAX);
  const std::int64_t got = fits ? value->get<std::int64_t>() : 0;
  if (!fits || got < low || got > high) {
    fail(
        key, fmt::format(
                 "must be a whole number from {} to {}, got {}", low, high,
                 shown(*value)
             )
    );
  }
  return got;
}

void Fields::only(
    std::string_view key,
    const Json& value,
    std::string_view why
) {
  const Json* got = find(key);
  if (got == nullptr || *got == value) return;
  fail(key, fmt::format("is not supported: {}", why));
}

void Fields::pass_over(std::initializer_list<const char*> keys) {
  known_.insert(known_.end(), keys.begin(), keys.end());
}

void Fields::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (value.is_null() || std::ranges::find(known_, key) != known_.end()) {
      continue;
    }
    const std::string name = name_of(key);
    // A very long name was not typed by a person and is not repeated in the
    // error.
    constexpr std::size_t kLongestParam = 256;
    throw ApiError(
        400,
        fmt::format(
            "{} is not supported{}", shown(Json(name)),
            did_you_mean(key, known_)
        ),
        name.size() <= kLongestParam ? name : "", "unsupported_parameter"
    );
  }
}

std::string joined_text(
    const Json& value,
    const std::string& where,
    FunctionRef<std::string(const Json& part, const std::string& where)>
        part_text
) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) {
    throw ApiError(
        400, fmt::format("'{}' must be text or a list of text parts", where),
        where
    );
  }
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    out += part_text(value[i], fmt::format("{}[{}]", where, i));
  }
  return out;
}

}  // namespace hearth::serve
