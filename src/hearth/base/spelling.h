#pragma once
// The nearest known word, for every "unknown X" error.
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

// Restricted edit distance: insert, delete, replace, swap neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The nearest known word, if it is near enough to be what was meant.
std::optional<std::string> nearest(
    std::string_view word,
    std::span<const std::string> known
);

// "; did you mean 'x'?", or an empty string.
std::string did_you_mean(
    std::string_view word,
    std::span<const std::string> known
);

}  // namespace hearth
