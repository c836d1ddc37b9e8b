#pragma once
// Numbers between two bounds, digit by digit.
#include <cstdint>
#include <optional>

#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

// Bounds of what is generated where a schema has none.
constexpr std::int64_t kMostInteger = 999'999'999'999'999'999;

// Whole numbers from `least` to `most`, without leading zeros.
ExprPtr integer_between(std::int64_t least, std::int64_t most);

// Numbers from least / 10^places to most / 10^places, written with `places`
// digits behind the point or more; an end that does not belong to them is left
// out.
struct DecimalBounds {
  std::int64_t least = 0, most = 0;
  int places = 0;
  bool without_least = false, without_most = false;
};
ExprPtr decimal_between(const DecimalBounds& bounds);

}  // namespace hearth::text::grammar
