#pragma once
// UTF-8 in and out of code points, and the repair of what is not UTF-8.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::text {

struct CodePoint {
  std::uint32_t value = 0;
  std::uint32_t size = 0;  // bytes
};

// The code point at p, of text known to be valid UTF-8.
inline CodePoint decode_utf8(const char* p) {
  const auto* u = reinterpret_cast<const unsigned char*>(p);
  const std::uint32_t a = u[0];
  if (a < 0x80) return {a, 1};
  if (a < 0xE0) return {(a & 0x1F) << 6 | (u[1] & 0x3Fu), 2};
  if (a < 0xF0) {
    return {(a & 0x0F) << 12 | (u[1] & 0x3Fu) << 6 | (u[2] & 0x3Fu), 3};
  }
  return {
      (a & 0x07) << 18 | (u[1] & 0x3Fu) << 12 | (u[2] & 0x3Fu) << 6 |
          (u[3] & 0x3Fu),
      4
  };
}

// Bytes of a character by its first byte, of valid UTF-8.
inline std::size_t utf8_size(char first) {
  const auto a = static_cast<unsigned char>(first);
  return a < 0x80 ? 1 : a < 0xE0 ? 2 : a < 0xF0 ? 3 : 4;
}
inline bool is_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}
// Where the last character of text[0, end) starts; end must not be 0.
inline std::size_t previous_character(std::string_view text, std::size_t end) {
  do {
    --end;
  } while (end > 0 && is_continuation(text[end]));
  return end;
}

// The first byte at or after i that is not ASCII, or the end.
std::size_t skip_ascii(std::string_view text, std::size_t i);
void append_utf8(std::string& out, std::uint32_t code_point);
std::u32string to_code_points(std::string_view valid);

// How many leading bytes of text are whole valid characters.
std::size_t valid_utf8_prefix(std::string_view text);
inline bool is_valid_utf8(std::string_view text) {
  return valid_utf8_prefix(text) == text.size();
}
// Every maximal ill-formed part becomes one U+FFFD, as Python's
// errors="replace" and Rust's from_utf8_lossy do.
void append_repaired_utf8(std::string& out, std::string_view text);
std::string repair_utf8(std::string_view text);

// How many bytes at the end of text begin a character that more bytes could
// complete: 0 to 3.
std::size_t unfinished_utf8_suffix(std::string_view text);

}  // namespace hearth::text
