#pragma once
// Paths in commands that are to be pasted.
#include <string>
#include <string_view>

namespace hearth {

// As it is where a POSIX shell reads it as one word, else in single quotes.
std::string shell_word(std::string_view text);

}  // namespace hearth
