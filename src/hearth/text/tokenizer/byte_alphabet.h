#pragma once
// The 256 printable characters that byte-level tokenizers spell bytes with.
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::text {

// The character of a byte, and back; -1 for a character that spells none.
std::uint32_t byte_to_character(unsigned char byte);
int character_to_byte(std::uint32_t character);

void append_byte_spelling(std::string& out, std::string_view bytes);
// False, with out untouched, when a character of text spells no byte.
bool append_spelled_bytes(std::string& out, std::string_view text);

}  // namespace hearth::text
