#include "hearth/text/grammar/utf8_ranges.h"

#include <algorithm>

namespace hearth::text::grammar {
namespace {

constexpr std::array<char32_t, 4> kLastOfSize{0x7F, 0x7FF, 0xFFFF, 0x10FFFF};

int size_of(char32_t code) {
  int size = 1;
  while (code > kLastOfSize.at(static_cast<std::size_t>(size - 1))) ++size;
  return size;
}

std::array<std::uint8_t, 4> bytes_of(char32_t code, int size) {
  std::array<std::uint8_t, 4> bytes{};
  constexpr std::array<unsigned, 5> kLead{0, 0, 0xC0, 0xE0, 0xF0};
  for (int i = size - 1; i > 0; --i) {
    bytes.at(static_cast<std::size_t>(i)) =
        static_cast<std::uint8_t>(0x80 | (code & 0x3F));
    code >>= 6;
  }
  bytes[0] = static_cast<std::uint8_t>(
      kLead.at(static_cast<std::size_t>(size)) | code
  );
  return bytes;
}

// Both ends have the same size. Where they differ before the last byte, the
// ragged ends are cut off until the middle is full of whole blocks.
void split(
    char32_t first,
    char32_t last,
    int size,
    std::vector<Utf8Range>& out
) {
  for (int tail = size - 1; tail > 0; --tail) {
    const char32_t block = (char32_t{1} << (6 * tail)) - 1;
    if ((first & ~block) == (last & ~block)) continue;
    if ((first & block) != 0) {
      split(first, first | block, size, out);
      split((first | block) + 1, last, size, out);
      return;
    }
    if ((last & block) != block) {
      split(first, (last & ~block) - 1, size, out);
      split(last & ~block, last, size, out);
      return;
    }
  }
  const auto low = bytes_of(first, size), high = bytes_of(last, size);
  Utf8Range range;
  range.size = size;
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
    range.bytes.at(i) = {low.at(i), high.at(i)};
  }
  out.push_back(range);
}

}  // namespace

void append_utf8(CodeRange range, std::vector<Utf8Range>& out) {
  char32_t first = range.first;
  while (first <= range.last) {
    const int size = size_of(first);
    const char32_t last = std::min(
        range.last, kLastOfSize.at(static_cast<std::size_t>(size - 1))
    );
    split(first, last, size, out);
    first = last + 1;
  }
}

void append_utf8(char32_t code, std::string& out) {
  const int size = size_of(code);
  const auto bytes = bytes_of(code, size);
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
    out += static_cast<char>(bytes.at(i));
  }
}

}  // namespace hearth::text::grammar
