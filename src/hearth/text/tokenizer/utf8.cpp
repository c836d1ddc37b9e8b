#include "hearth/text/tokenizer/utf8.h"

#include <cstring>

namespace hearth::text {
namespace {

struct Step {
  std::size_t size = 1;  // bytes looked at: a character, or an ill-formed part
  bool valid = false;
  bool cut = false;  // ill-formed only because the text ends
};

// The ranges of Unicode's table 3-7: which second byte may follow the first.
Step step(const unsigned char* p, std::size_t left) {
  const unsigned a = p[0];
  if (a < 0x80) return {1, true};
  if (a < 0xC2 || a > 0xF4) return {1};
  const std::size_t size = a < 0xE0 ? 2 : a < 0xF0 ? 3 : 4;
  const unsigned low = a == 0xE0 ? 0xA0 : a == 0xF0 ? 0x90 : 0x80;
  const unsigned high = a == 0xED ? 0x9F : a == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    if (i >= left) return {i, false, true};
    const bool fits =
        i == 1 ? p[1] >= low && p[1] <= high : p[i] >= 0x80 && p[i] <= 0xBF;
    if (!fits) return {i};
  }
  return {size, true};
}

}  // namespace

std::size_t skip_ascii(std::string_view text, std::size_t i) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  const std::size_t n = text.size();
  while (i + 8 <= n) {
    std::uint64_t word;
    std::memcpy(&word, p + i, 8);
    if (word & 0x8080808080808080u) break;
    i += 8;
  }
  while (i < n && p[i] < 0x80) ++i;
  return i;
}

void append_utf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::u32string to_code_points(std::string_view valid) {
  std::u32string out;
  for (std::size_t i = 0; i < valid.size();) {
    const CodePoint c = decode_utf8(valid.data() + i);
    out += static_cast<char32_t>(c.value);
    i += c.size;
  }
  return out;
}

std::size_t valid_utf8_prefix(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = 0;
  while (true) {
    i = skip_ascii(text, i);
    if (i == text.size()) return i;
    const Step s = step(p + i, text.size() - i);
    if (!s.valid) return i;
    i += s.size;
  }
}

void append_repaired_utf8(std::string& out, std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t good = valid_utf8_prefix(text.substr(i));
    out.append(text, i, good);
    i += good;
    if (i == text.size()) break;
    out += "\xEF\xBF\xBD";
    i += step(p + i, text.size() - i).size;
  }
}

std::string repair_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  append_repaired_utf8(out, text);
  return out;
}

std::size_t unfinished_utf8_suffix(std::string_view text) {
  const auto* p = reinterpret_cast<const unsigned char*>(text.data());
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const std::size_t i = text.size() - back;
    if (p[i] < 0xC0) continue;
    return step(p + i, back).cut ? back : 0;
  }
  return 0;
}

}  // namespace hearth::text
