#pragma once
// UTF-8 text as Python's str: positions are code points, and case, spaces and
// classes are Unicode's. Every string here is valid UTF-8.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::text::jinja {

bool valid_utf8(std::string_view text);
// Decodes the code point at `at` and moves past it.
char32_t next_code_point(std::string_view text, std::size_t& at);
void append_code_point(std::string& out, char32_t c);
std::size_t code_point_count(std::string_view text);
// Byte offset of the nth code point, or the size when there are fewer.
std::size_t byte_offset(std::string_view text, std::size_t index);
std::vector<std::string_view> code_points(std::string_view text);

bool is_space(char32_t c);
bool is_printable(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);

std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);
std::string to_title(std::string_view text);
std::string capitalize(std::string_view text);
std::string case_fold(std::string_view text);
std::string swap_case(std::string_view text);

enum class Side { kLeft, kRight, kBoth };
// Without `chars`: Unicode white space.
std::string_view strip(std::string_view text, Side side);
std::string_view strip(
    std::string_view text,
    Side side,
    std::string_view chars
);
// At runs of white space; at most `limit` splits when not negative.
std::vector<std::string_view> split_spaces(
    std::string_view text,
    std::int64_t limit,
    bool from_right
);
std::vector<std::string_view> split_at(
    std::string_view text,
    std::string_view separator,
    std::int64_t limit,
    bool from_right
);
std::vector<std::string_view> split_lines(
    std::string_view text,
    bool keep_ends
);
// At most `limit` replacements when not negative; counts `old` occurrences.
std::string replace_all(
    std::string_view text,
    std::string_view old,
    std::string_view with,
    std::int64_t limit
);
// Occurrences that do not overlap, as str.count.
std::size_t count_of(std::string_view text, std::string_view part);

}  // namespace hearth::text::jinja
