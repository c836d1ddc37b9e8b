#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hearth/text/grammar/digits.h"
#include "hearth/text/grammar/regex.h"
#include "hearth/text/grammar/schema_impl.h"

namespace hearth::text::grammar {
namespace {

// A bound as a whole number of units of 10^-places.
struct Bound {
  bool there = false;
  bool excluded = false;
  std::string digits;  // as it is written: "-12.5"
};

int places_of(const Bound& bound) {
  const auto point = bound.digits.find('.');
  return point == std::string::npos
             ? 0
             : static_cast<int>(bound.digits.size() - point - 1);
}

std::int64_t scaled(
    const Bound& bound,
    int places,
    const std::string& keyword,
    const std::string& path
) {
  std::string digits = bound.digits;
  int have = places_of(bound);
  std::erase(digits, '.');
  for (; have < places; ++have) digits += '0';
  if (digits.size() > 18) {
    fail_schema(
        fmt::format(
            "'{}' must have at most 18 digits, got {}", keyword, bound.digits
        ),
        path
    );
  }
  return std::stoll(digits);
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
    const double number = value.get<double>();
    bound.digits = std::abs(number) < 1e15 && number == std::floor(number)
                       ? fmt::format("{:.0f}", number)
                       : fmt::format("{}", number);
    if (bound.digits == "-0") bound.digits = "0";
  }
  if (bound.digits.find_first_of("eEin") != std::string::npos) {
    fail_schema(
        fmt::format(
            "'{}' must have at most 18 digits, got {}", keyword, bound.digits
        ),
        path
    );
  }
  return bound;
}

struct Bounds {
  Bound least, most;
};

// Both a bound and an exclusive one may be there: the tighter one counts.
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

Bounds bounds_of(const Json& schema, const std::string& path) {
  return {
      tighter(schema, "minimum", "exclusiveMinimum", 1, path),
      tighter(schema, "maximum", "exclusiveMaximum", -1, path)
  };
}

}  // namespace

ExprPtr SchemaReader::number_of(const Json& schema, const std::string& path) {
  const auto step = schema.find("multipleOf");
  if (step == schema.end()) return number(schema, path);
  if (*step == Json(1)) return integer(schema, path);
  unheld("the keyword 'multipleOf' is not supported", path);
  const bool whole = step->is_number() && type_of(*step) == kInteger;
  return whole ? integer(schema, path) : number(schema, path);
}

ExprPtr SchemaReader::integer(const Json& schema, const std::string& path) {
  const auto [least, most] = bounds_of(schema, path);
  if (!least.there && !most.there) return json_integer();
  // A bound between whole numbers is moved to the next one inside.
  std::int64_t low = -kMostInteger, high = kMostInteger;
  if (least.there) {
    const std::string whole = least.digits.substr(0, least.digits.find('.'));
    low = scaled({true, false, whole}, 0, "minimum", path);
    const bool cut = places_of(least) > 0;
    if (cut ? least.digits.front() != '-' : least.excluded) ++low;
  }
  if (most.there) {
    const std::string whole = most.digits.substr(0, most.digits.find('.'));
    high = scaled({true, false, whole}, 0, "maximum", path);
    const bool cut = places_of(most) > 0;
    if (cut ? most.digits.front() == '-' : most.excluded) --high;
  }
  if (low > high) fail_schema("no whole number lies between the bounds", path);
  return integer_between(low, high);
}

ExprPtr SchemaReader::number(const Json& schema, const std::string& path) {
  const auto [least, most] = bounds_of(schema, path);
  if (!least.there && !most.there) return json_number();
  DecimalBounds bounds;
  bounds.places = std::max(places_of(least), places_of(most));
  bounds.without_least = least.excluded;
  bounds.without_most = most.excluded;
  // Room between an end that is left out and its neighbour.
  if (least.excluded || most.excluded) bounds.places += 2;
  constexpr std::int64_t kFar = 1'000'000'000'000'000;
  bounds.least =
      least.there ? scaled(least, bounds.places, "minimum", path) : -kFar;
  bounds.most =
      most.there ? scaled(most, bounds.places, "maximum", path) : kFar;
  if (bounds.least > bounds.most) {
    fail_schema("no number lies between the bounds", path);
  }
  return decimal_between(bounds);
}

}  // namespace hearth::text::grammar
