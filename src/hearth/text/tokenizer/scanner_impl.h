#pragma once
// Shared parts of the hand-written scanners: character classes as bits, and
// the alternatives that the well-known patterns have in common. Each function
// takes the text and a position and returns where its match ends; the position
// itself means that it does not match.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hearth/text/tokenizer/unicode.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text::scan {

enum Class : std::uint8_t {
  kLetter = 1,
  kNumber = 2,
  kSpace = 4,
  kNewline = 8,  // \r and \n, which are spaces too
  kOther = 16,   // none of letter, number, space
  kUpper = 32,   // Lu Lt Lm Lo M
  kLower = 64,   // Ll Lm Lo M
  kSymbol = 128  // P or S
};

// Of one code point that is not ASCII.
std::uint8_t classify(std::uint32_t code_point, const std::uint16_t* table);
// By first byte; 0 for the bytes of longer characters.
extern const std::array<std::uint8_t, 256> kBytes;

struct Char {
  std::uint8_t cls = 0;  // 0 at the end of the text
  std::uint8_t size = 0;
};

struct Text {
  const char* data;
  std::size_t size;
  const std::uint16_t* table;

  explicit Text(std::string_view text)
      : data(text.data()), size(text.size()), table(unicode::table()) {}

  Char at(std::size_t i) const {
    if (i >= size) return {};
    const auto byte = static_cast<unsigned char>(data[i]);
    if (byte < 0x80) return {kBytes[byte], 1};
    const CodePoint c = decode_utf8(data + i);
    return {classify(c.value, table), static_cast<std::uint8_t>(c.size)};
  }
  bool is(std::size_t i, char c) const { return i < size && data[i] == c; }
  std::size_t run(std::size_t i, std::uint8_t classes) const {
    while (true) {
      while (i < size &&
             kBytes[static_cast<unsigned char>(data[i])] & classes) {
        ++i;
      }
      if (i >= size || static_cast<unsigned char>(data[i]) < 0x80) return i;
      const Char c = at(i);
      if (!(c.cls & classes)) return i;
      i += c.size;
    }
  }
};

// 's 't 're 've 'm 'll 'd, in either case when any_case.
std::size_t contraction(const Text& text, std::size_t i, bool any_case);
// \s*[\r\n]+|\s+(?!\S)|\s+, without the first alternative unless newlines.
std::size_t spaces(const Text& text, std::size_t i, bool newlines);

}  // namespace hearth::text::scan
