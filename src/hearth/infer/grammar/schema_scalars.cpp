#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "hearth/infer/grammar/digits.h"
#include "hearth/infer/grammar/regex.h"
#include "hearth/infer/grammar/schema_impl.h"

namespace hearth::infer::grammar {
namespace {

// What each format is generated as: a part of what it allows, all of it valid.
// February has 28 days, and hosts are short.
const std::map<std::string, std::string>& formats() {
  static const std::string kDate =
      "[1-9][0-9]{3}-"
      "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])"
      "|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
      "|02-(0[1-9]|1[0-9]|2[0-8]))";
  static const std::string kTime =
      "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
      "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
  static const std::string kByte =
      "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  static const std::string kLabel =
      "[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?";
  static const std::map<std::string, std::string> kFormats{
      {"date", kDate},
      {"time", kTime},
      {"date-time", kDate + "T" + kTime},
      {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
      {"email", "[A-Za-z0-9_+-]{1,24}(\\.[A-Za-z0-9_+-]{1,24}){0,2}@" + kLabel +
                    "(\\." + kLabel + "){1,3}"},
      {"ipv4", kByte + "(\\." + kByte + "){3}"}
  };
  return kFormats;
}

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
  if (schema.contains("multipleOf") && schema["multipleOf"] != Json(1)) {
    fail_schema("the keyword 'multipleOf' is not supported", path);
  }
  return {
      tighter(schema, "minimum", "exclusiveMinimum", 1, path),
      tighter(schema, "maximum", "exclusiveMaximum", -1, path)
  };
}

}  // namespace

ExprPtr SchemaReader::string(const Json& schema, const std::string& path) {
  const bool sized =
      schema.contains("minLength") || schema.contains("maxLength");
  const auto pattern = schema.find("pattern");
  const auto format = schema.find("format");
  const int said = (sized ? 1 : 0) + (pattern != schema.end() ? 1 : 0) +
                   (format != schema.end() ? 1 : 0);
  if (said > 1) {
    fail_schema(
        "lengths, 'pattern' and 'format' are supported one at a time", path
    );
  }
  RegexOptions options;
  options.who = fmt::format("{} 'pattern' at {}:", kSchemaWho, path);
  options.chars = json_chars;
  std::string regex;
  if (pattern != schema.end()) {
    if (!pattern->is_string()) fail_schema("'pattern' must be a text", path);
    regex = pattern->get<std::string>();
    options.search = true;
  } else if (format != schema.end()) {
    const auto found = format->is_string()
                           ? formats().find(format->get<std::string>())
                           : formats().end();
    if (found == formats().end()) {
      fail_schema(
          fmt::format(
              "the 'format' {} is not supported", to_json_line(*format)
          ),
          path
      );
    }
    regex = found->second;
  } else {
    const int min = count_of(schema, "minLength", 0, path);
    const int max = count_of(schema, "maxLength", kNoLimit, path);
    if (max != kNoLimit && max < min) {
      fail_schema("'maxLength' must not be below 'minLength'", path);
    }
    return json_string(min, max);
  }
  return sequence({text("\""), regex_expr(regex, options), text("\"")});
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
  if (schema.contains("multipleOf")) return integer(schema, path);
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

}  // namespace hearth::infer::grammar
