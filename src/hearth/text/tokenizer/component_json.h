#pragma once
// Reads the fields of tokenizer.json components, with errors that say which
// field of which component is wrong.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/base/json.h"
#include "hearth/text/tokenizer/matcher.h"

namespace hearth::text {

std::string component_type(const Json& json, std::string_view what);
[[noreturn]] void unknown_type(std::string_view what, std::string_view type);
const Json& array_field(
    const Json& json,
    std::string_view what,
    const char* key
);
std::string string_field(
    const Json& json,
    std::string_view what,
    const char* key
);
bool bool_field(
    const Json& json,
    std::string_view what,
    const char* key,
    bool fallback
);
std::int64_t int_field(
    const Json& json,
    std::string_view what,
    const char* key,
    std::int64_t fallback
);
// A string of one character, as its UTF-8.
std::string char_field(
    const Json& json,
    std::string_view what,
    const char* key
);
// {"String": ...} or {"Regex": ...}
std::unique_ptr<Matcher> pattern_field(
    const Json& json,
    std::string_view what,
    const char* key
);

}  // namespace hearth::text
