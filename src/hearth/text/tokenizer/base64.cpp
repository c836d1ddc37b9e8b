#include "hearth/text/tokenizer/base64.h"

#include <cstdint>

#include "hearth/base/error.h"

namespace hearth::text {
namespace {

int value_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::string decode_base64(std::string_view text) {
  if (text.size() % 4) throw FormatError("base64 text is cut short");
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    const int value = value_of(c);
    if (value < 0) throw FormatError("base64 text holds another character");
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return out;
}

}  // namespace hearth::text
