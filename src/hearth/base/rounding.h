#pragma once
// Rounding sizes up to whole multiples.
#include <cstddef>

namespace hearth {

// The least multiple of `to` that is not less than n.
constexpr std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace hearth
