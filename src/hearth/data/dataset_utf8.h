#pragma once
// UTF-8 as data has it: mostly valid, sometimes not.
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth::data {

// The length of the longest valid prefix; text.size() when all is valid.
std::size_t valid_utf8_prefix(std::string_view text);

// Replaces each invalid sequence by U+FFFD in the way of the Unicode standard
// and of Python's errors="replace" (one per maximal subpart). Returns how many.
std::size_t repair_utf8(std::string_view text, std::string& out);

}  // namespace hearth::data
