#include "hearth/text/tokenizer/byte_alphabet.h"

#include <array>

#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

// Printable bytes stand for themselves, the others take 256, 257, ... in turn.
struct Alphabet {
  std::array<std::uint32_t, 256> character{};
  std::array<std::int16_t, 512> byte{};
  constexpr Alphabet() {
    byte.fill(-1);
    std::uint32_t next = 256;
    for (std::uint32_t b = 0; b < 256; ++b) {
      const bool printable =
          (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      character[b] = printable ? b : next++;
      byte[character[b]] = static_cast<std::int16_t>(b);
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

std::uint32_t byte_to_character(unsigned char byte) {
  return kAlphabet.character[byte];
}

int character_to_byte(std::uint32_t character) {
  return character < 512 ? kAlphabet.byte[character] : -1;
}

void append_byte_spelling(std::string& out, std::string_view bytes) {
  for (char c : bytes) {
    append_utf8(out, byte_to_character(static_cast<unsigned char>(c)));
  }
}

bool append_spelled_bytes(std::string& out, std::string_view text) {
  const std::size_t before = out.size();
  for (std::size_t i = 0; i < text.size();) {
    const CodePoint c = decode_utf8(text.data() + i);
    const int byte = character_to_byte(c.value);
    if (byte < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(byte);
    i += c.size;
  }
  return true;
}

}  // namespace hearth::text
