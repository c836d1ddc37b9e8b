#pragma once
// Letters, digits and blanks of ASCII, whatever the locale; all other bytes are
// themselves.
#include <string>
#include <string_view>

namespace hearth {

constexpr char ascii_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string ascii_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ascii_lower(c);
  return out;
}

// Without the blanks at its ends.
constexpr std::string_view trimmed(
    std::string_view text,
    std::string_view blanks = " \t"
) {
  const auto first = text.find_first_not_of(blanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// 0 to 15, or -1 for what is no hexadecimal digit.
constexpr int hex_digit(char32_t c) {
  if (c >= U'0' && c <= U'9') return static_cast<int>(c - U'0');
  if (c >= U'a' && c <= U'f') return static_cast<int>(c - U'a') + 10;
  if (c >= U'A' && c <= U'F') return static_cast<int>(c - U'A') + 10;
  return -1;
}

}  // namespace hearth
