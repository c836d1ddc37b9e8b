#pragma once
// A range of code points as ranges of bytes: U+0080..U+07FF is C2..DF 80..BF.
#include <array>
#include <cstdint>
#include <vector>

#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

struct ByteRange {
  std::uint8_t first = 0, last = 0;
};

// One to four ranges, one for each byte of the character.
struct Utf8Range {
  std::array<ByteRange, 4> bytes;
  int size = 0;
};

// Together they hold exactly the characters of the range, which has no
// surrogates.
void append_utf8(CodeRange range, std::vector<Utf8Range>& out);
// The bytes of one character, appended.
void append_utf8(char32_t code, std::string& out);

}  // namespace hearth::text::grammar
