// Numbers and other single values of a JSON schema.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hearth/text/grammar/digits.h"
#include "hearth/text/grammar/regex.h"
#include "hearth/text/grammar/schema_impl.h"

namespace hearth::text::grammar {
namespace {

using Bounds = NumberBounds;
using Bound = NumberBounds::End;

// What is nearer to nothing is not held.
constexpr double kLeast = 1e-6;

// Digits of what can be held, the sign among them.
constexpr std::size_t kMostDigits = 18;

int places_of(const Bound& bound) {
  const auto point = bound.digits.find('.');
  return point == std::string::npos
             ? 0
             : static_cast<int>(bound.digits.size() - point - 1);
}

// As units of 10^-places, nothing where those have too many digits.
std::optional<std::int64_t> scaled(const Bound& bound, int places) {
  std::string digits = bound.digits;
  int have = places_of(bound);
  std::erase(digits, '.');
  for (; have < places; ++have) digits += '0';
  if (digits.size() > kMostDigits) return {};
  return std::stoll(digits);
}

// Without an exponent, where that has so few digits.
std::string digits_of(double number) {
  constexpr int kMostPlaces = 16;
  const double size = std::abs(number);
  if (number == 0) return "0";
  for (int places = 0; size >= kLeast && size < 1e15; ++places) {
    if (places > kMostPlaces) break;
    std::string digits = fmt::format("{:.{}f}", number, places);
    if (std::strtod(digits.c_str(), nullptr) == number) return digits;
  }
  return fmt::format("{}", number);
}

Bound read_bound(
    const Json& value,
    const char* keyword,
    const std::string& path
) {
  if (!value.is_number()) {
    fail_schema(fmt::format("'{}' must be a number", keyword), path);
  }
  Bound bound;
  bound.there = true;
  if (value.is_number_integer()) {
    bound.digits = value.dump();
  } else {
    bound.digits = digits_of(value.get<double>());
  }
  return bound;
}

// Both a bound and an exclusive one may be there: the tighter one counts.
// sign: 1 of the least, -1 of the most.
Bound tighter(
    const Json& schema,
    const char* keyword,
    const char* exclusive,
    double sign,
    const std::string& path
) {
  Bound bound;
  if (schema.contains(keyword)) {
    bound = read_bound(schema[keyword], keyword, path);
  }
  if (!schema.contains(exclusive)) return bound;
  Bound other = read_bound(schema[exclusive], exclusive, path);
  other.excluded = true;
  const bool wins = !bound.there || sign * schema[exclusive].get<double>() >=
                                        sign * schema[keyword].get<double>();
  return wins ? other : bound;
}

// The next bound outside of one that cannot be held: around what is nearly
// nothing; else there is none. What lies outside of all numbers that are made
// (kMostDigits) holds by itself.
Bound wider(const Bound& bound, double sign) {
  // Not stod, which throws where the next number is nothing.
  const double value = std::strtod(bound.digits.c_str(), nullptr);
  if (!(std::abs(value) < kLeast)) return {};
  if (sign * value > 0) return {true, true, "0"};
  // All numbers would have as many places as a nearer one.
  return {true, false, sign > 0 ? "-1" : "1"};
}

bool can_be_held(const Bound& bound, int places) {
  if (!bound.there) return true;
  const bool plain = bound.digits.find_first_of("eEin") == std::string::npos;
  return plain && scaled(bound, places);
}

// Places behind the point of all numbers between them.
int places_between(const Bounds& bounds) {
  const int places = std::max(places_of(bounds.least), places_of(bounds.most));
  // Room between an end that is left out and its neighbour.
  return places + (bounds.least.excluded || bounds.most.excluded ? 2 : 0);
}

}  // namespace

// Bounds that can be held, each by itself and both with the same places.
NumberBounds SchemaReader::bounds_of(
    const Json& schema,
    bool whole,
    const std::string& path
) const {
  Bounds out{
      tighter(schema, "minimum", "exclusiveMinimum", 1, path),
      tighter(schema, "maximum", "exclusiveMaximum", -1, path)
  };
  const auto widen = [&](Bound& bound, const char* keyword, double sign) {
    unheld(
        fmt::format(
            "'{}' must have at most {} digits, got {}", keyword, kMostDigits,
            bound.digits
        ),
        path
    );
    bound = wider(bound, sign);
  };
  if (!can_be_held(out.least, 0)) widen(out.least, "minimum", 1);
  if (!can_be_held(out.most, 0)) widen(out.most, "maximum", -1);
  if (whole) return out;
  // The end with fewer places has the more digits before the point.
  const bool most_first = places_of(out.most) <= places_of(out.least);
  for (const bool most : {most_first, !most_first}) {
    Bound& bound = most ? out.most : out.least;
    if (can_be_held(bound, places_between(out))) continue;
    widen(bound, most ? "maximum" : "minimum", most ? -1 : 1);
  }
  return out;
}

ExprPtr SchemaReader::number_of(const Json& schema, const std::string& path) {
  const auto step = schema.find("multipleOf");
  if (step == schema.end()) return number(schema, path);
  if (*step == Json(1)) return integer(schema, path);
  unheld("the keyword 'multipleOf' is not supported", path);
  const bool whole = step->is_number() && type_of(*step) == kInteger;
  return whole ? integer(schema, path) : number(schema, path);
}

ExprPtr SchemaReader::integer(const Json& schema, const std::string& path) {
  const auto [least, most] = bounds_of(schema, true, path);
  if (!least.there && !most.there) return json_integer();
  const auto whole_of = [](const Bound& bound) {
    const std::string whole = bound.digits.substr(0, bound.digits.find('.'));
    return scaled({true, false, whole}, 0).value();
  };
  // A bound between whole numbers is moved to the next one inside.
  std::int64_t low = -kMostInteger, high = kMostInteger;
  if (least.there) {
    low = whole_of(least);
    const bool cut = places_of(least) > 0;
    if (cut ? least.digits.front() != '-' : least.excluded) ++low;
  }
  if (most.there) {
    high = whole_of(most);
    const bool cut = places_of(most) > 0;
    if (cut ? most.digits.front() == '-' : most.excluded) --high;
  }
  if (low > high) fail_schema("no whole number lies between the bounds", path);
  return integer_between(low, high);
}

ExprPtr SchemaReader::number(const Json& schema, const std::string& path) {
  const Bounds given = bounds_of(schema, false, path);
  const auto& [least, most] = given;
  if (!least.there && !most.there) return json_number();
  DecimalBounds bounds;
  bounds.places = places_between(given);
  bounds.without_least = least.excluded;
  bounds.without_most = most.excluded;
  constexpr std::int64_t kFar = 1'000'000'000'000'000;
  bounds.least = least.there ? scaled(least, bounds.places).value() : -kFar;
  bounds.most = most.there ? scaled(most, bounds.places).value() : kFar;
  if (bounds.least > bounds.most) {
    fail_schema("no number lies between the bounds", path);
  }
  return decimal_between(bounds);
}

}  // namespace hearth::text::grammar
