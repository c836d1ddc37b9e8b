#include "hearth/text/grammar/digits.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace hearth::text::grammar {
namespace {

ExprPtr digit_range(char first, char last) {
  const auto code = [](char c) {
    return static_cast<char32_t>(static_cast<unsigned char>(c));
  };
  return chars({{code(first), code(last)}});
}

// Digit strings of one length from `low` to `high`; the point goes in before
// the last `places` digits.
class SameLength {
 public:
  explicit SameLength(int places) : places_(places) {}

  ExprPtr between(std::string_view low, std::string_view high) const {
    if (low.empty()) return sequence({});
    if (low.front() == high.front()) {
      return sequence(
          {digit(low.size(), low.front(), low.front()),
           between(low.substr(1), high.substr(1))}
      );
    }
    const std::size_t rest = low.size() - 1;
    const std::string zeros(rest, '0'), nines(rest, '9');
    std::vector<ExprPtr> ways;
    char first = low.front(), last = high.front();
    if (low.substr(1) != zeros) {
      ways.push_back(sequence(
          {digit(low.size(), first, first), between(low.substr(1), nines)}
      ));
      ++first;
    }
    const bool ragged = high.substr(1) != nines;
    if (ragged) --last;
    if (first <= last) {
      ways.push_back(
          sequence({digit(low.size(), first, last), between(zeros, nines)})
      );
    }
    if (ragged) {
      ways.push_back(sequence(
          {digit(low.size(), high.front(), high.front()),
           between(zeros, high.substr(1))}
      ));
    }
    return choice(std::move(ways));
  }

 private:
  // `left` digits are to come, this one included.
  ExprPtr digit(std::size_t left, char first, char last) const {
    ExprPtr one = digit_range(first, last);
    if (places_ == 0 || left != static_cast<std::size_t>(places_)) return one;
    return sequence({text("."), one});
  }
  int places_;
};

// Numbers from low to high, neither negative, with `places` of the digits
// behind a point.
ExprPtr natural(std::int64_t low, std::int64_t high, int places) {
  const auto least_size = static_cast<std::size_t>(places) + 1;
  const auto written = [&](std::int64_t value) {
    return fmt::format("{:0>{}}", value, least_size);
  };
  std::vector<ExprPtr> ways;
  const std::string last = written(high);
  for (std::string from = written(low); from.size() <= last.size();) {
    const std::string to =
        from.size() == last.size() ? last : std::string(from.size(), '9');
    if (from <= to) ways.push_back(SameLength(places).between(from, to));
    from = "1" + std::string(from.size(), '0');
  }
  return choice(std::move(ways));
}

}  // namespace

ExprPtr integer_between(std::int64_t least, std::int64_t most) {
  std::vector<ExprPtr> ways;
  if (least < 0 && least <= most) {
    const std::int64_t nearest = std::min<std::int64_t>(most, -1);
    ways.push_back(sequence({text("-"), natural(-nearest, -least, 0)}));
  }
  if (most >= 0 && least <= most) {
    ways.push_back(natural(std::max<std::int64_t>(least, 0), most, 0));
  }
  return choice(std::move(ways));
}

namespace {

// From low to high in units of the last place; digits may be appended to all
// but the last of them, where that belongs to them.
ExprPtr magnitude(
    std::int64_t low,
    std::int64_t high,
    int places,
    bool with_high
) {
  const ExprPtr more = repeat(digit_range('0', '9'), 1, 16);
  const ExprPtr tail =
      places == 0 ? optional(sequence({text("."), more})) : optional(more);
  std::vector<ExprPtr> ways;
  if (low < high) {
    ways.push_back(sequence({natural(low, high - 1, places), tail}));
  }
  if (with_high && low <= high) ways.push_back(natural(high, high, places));
  return choice(std::move(ways));
}

}  // namespace

ExprPtr decimal_between(const DecimalBounds& bounds) {
  const auto& [least, most, places, without_least, without_most] = bounds;
  std::vector<ExprPtr> ways;
  if (most > 0 || (most == 0 && !without_most)) {
    std::int64_t low = std::max<std::int64_t>(least, 0);
    if (without_least && low == least) ++low;
    ways.push_back(magnitude(low, most, places, !without_most));
  }
  if (least < 0) {
    // -0 is 0: it belongs to them unless they end below that.
    std::int64_t low = std::max<std::int64_t>(-most, 0);
    if (without_most && most <= 0) ++low;
    ways.push_back(
        sequence({text("-"), magnitude(low, -least, places, !without_least)})
    );
  }
  return choice(std::move(ways));
}

}  // namespace hearth::text::grammar
