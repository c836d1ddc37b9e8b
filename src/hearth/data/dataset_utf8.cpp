#include "hearth/data/dataset_utf8.h"

#include <cstdint>
#include <cstring>

namespace hearth::data {
namespace {

struct Sequence {
  std::size_t size;  // bytes of the character, or of the maximal subpart
  bool valid;
};

// What the second byte of a sequence may be, by its first.
struct Second {
  unsigned char low = 0x80, high = 0xBF;
};
Second second_of(unsigned char lead) {
  switch (lead) {
    case 0xE0: return {0xA0, 0xBF};  // no overlong forms
    case 0xED: return {0x80, 0x9F};  // no surrogates
    case 0xF0: return {0x90, 0xBF};
    case 0xF4: return {0x80, 0x8F};  // up to U+10FFFF
    default: return {};
  }
}

// text starts with a byte above 0x7F.
Sequence next_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(text[i]);
  };
  const unsigned char lead = byte(0);
  std::size_t want = 0;
  if (lead >= 0xC2 && lead <= 0xDF) want = 2;
  if (lead >= 0xE0 && lead <= 0xEF) want = 3;
  if (lead >= 0xF0 && lead <= 0xF4) want = 4;
  if (want == 0) return {1, false};
  const Second range = second_of(lead);
  for (std::size_t i = 1; i < want; ++i) {
    const unsigned char low = i == 1 ? range.low : 0x80;
    const unsigned char high = i == 1 ? range.high : 0xBF;
    if (i == text.size() || byte(i) < low || byte(i) > high) return {i, false};
  }
  return {want, true};
}

std::size_t skip_ascii(std::string_view text, std::size_t at) {
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    if (word & 0x8080808080808080ULL) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = skip_ascii(text, 0);
  while (at < text.size()) {
    const Sequence s = next_sequence(text.substr(at, 4));
    if (!s.valid) return at;
    at = skip_ascii(text, at + s.size);
  }
  return at;
}

std::size_t repair_utf8(std::string_view text, std::string& out) {
  out.clear();
  std::size_t replaced = 0;
  for (;;) {
    const std::size_t valid = valid_utf8_prefix(text);
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) return replaced;
    out += "\xEF\xBF\xBD";
    ++replaced;
    text.remove_prefix(next_sequence(text.substr(0, 4)).size);
  }
}

}  // namespace hearth::data
