#pragma once
// Text as a string of JSON, appended.
#include <string>
#include <string_view>

namespace hearth::data {

// In quotes, escaped; bytes that are not UTF-8 stay what they are.
void append_json_string(std::string& out, std::string_view text);

}  // namespace hearth::data
