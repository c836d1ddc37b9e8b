#pragma once
// Rewrites a pattern from Oniguruma's syntax to PCRE2's, with every Unicode
// class written out as ranges of our own tables: the two libraries know
// different versions of Unicode, and the files were made with the former.
#include <string>
#include <string_view>

namespace hearth::text {

// Throws FormatError for what has no equivalent.
std::string to_pcre2(std::string_view pattern);

}  // namespace hearth::text
