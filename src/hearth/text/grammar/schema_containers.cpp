// Objects and arrays of a JSON schema.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "hearth/text/grammar/schema_impl.h"

namespace hearth::text::grammar {
namespace {

constexpr std::size_t kMaxName = 256;
constexpr std::size_t kMostRequired = 20000;
constexpr std::uint64_t kUnitsPerName = 10;

std::vector<std::string> required_of(
    const Json& schema,
    const std::string& path
) {
  std::vector<std::string> names;
  const auto found = schema.find("required");
  if (found == schema.end()) return names;
  if (!found->is_array())
    fail_schema("'required' must be a list of names", path);
  std::unordered_set<std::string_view> seen;
  for (const Json& name : *found) {
    if (!name.is_string())
      fail_schema("'required' must be a list of names", path);
    const auto& text = name.get_ref<const std::string&>();
    if (seen.insert(text).second) names.push_back(text);
  }
  return names;
}

// The names that other members may not have.
std::vector<std::string> taken_names(
    const Json& properties,
    const std::vector<std::string>& required,
    const std::string& path
) {
  std::vector<std::string> taken = required;
  for (const auto& [name, unused] : properties.items()) taken.push_back(name);
  for (const std::string& name : taken) {
    if (name.size() > kMaxName) {
      fail_schema(
          fmt::format(
              "names must have at most {} bytes where others are allowed, one "
              "has {}",
              kMaxName, name.size()
          ),
          path
      );
    }
  }
  return taken;
}

}  // namespace

// Properties come in the order of the schema, those that are required but not
// listed behind them, others last. Where the schema lists properties and does
// not speak of others, there are none: that is always valid.
ExprPtr SchemaReader::object(const Json& schema, const std::string& path) {
  const std::vector<std::string> required = required_of(schema, path);
  if (required.size() > kMostRequired) {
    fail_schema(
        fmt::format(
            "at most {} properties may be required, got {}", kMostRequired,
            required.size()
        ),
        path
    );
  }
  effort_.spend(required.size() * kUnitsPerName);
  const std::unordered_set<std::string> demands(
      required.begin(), required.end()
  );
  const auto properties = schema.find("properties");
  const auto extra = schema.find("additionalProperties");
  if (properties == schema.end() && extra == schema.end() && required.empty()) {
    return call(any_rules().object);
  }
  if (properties != schema.end() && !properties->is_object()) {
    fail_schema("'properties' must be an object", path);
  }
  std::vector<std::pair<ExprPtr, bool>> pairs;
  std::unordered_set<std::string> names;
  const auto add = [&](const std::string& name, ExprPtr made, bool demanded) {
    names.insert(name);
    pairs.emplace_back(
        sequence({json_literal(name), json_colon(), std::move(made)}), demanded
    );
  };
  if (properties != schema.end()) {
    for (const auto& [name, one] : properties->items()) {
      const bool demanded = demands.contains(name);
      if (one == Json(false) && !demanded) continue;
      const std::string place = place_in(place_in(path, "properties"), name);
      add(name, value(one, place), demanded);
    }
  }
  const bool open = extra == schema.end()
                        ? properties == schema.end() || properties->empty()
                        : *extra != Json(false);
  ExprPtr others;  // the value of a property that is not listed
  if (open || extra == schema.end()) {
    others = extra == schema.end()
                 ? call(any_rules().value)
                 : rule_of(*extra, place_in(path, "additionalProperties"));
  }
  for (const std::string& name : required) {
    if (names.contains(name)) continue;
    if (!others) {
      fail_schema(
          fmt::format("required property '{}' must be allowed", name), path
      );
    }
    add(name, others, true);
  }
  ExprPtr more;
  if (open) {
    const Json none = Json::object();
    const Json& listed = properties == schema.end() ? none : *properties;
    more = call(rules_->add(
        path, sequence(
                  {json_other_name(taken_names(listed, required, path)),
                   json_colon(), others}
              )
    ));
  }
  return members(std::move(pairs), more, path);
}

ExprPtr SchemaReader::members(
    std::vector<std::pair<ExprPtr, bool>> pairs,
    const ExprPtr& extra,
    const std::string& path
) {
  // The members that may follow one: all later ones, each after a comma.
  const auto behind = [&](std::size_t from) {
    std::vector<ExprPtr> parts;
    for (std::size_t i = from; i < pairs.size(); ++i) {
      ExprPtr one = sequence({json_comma(), pairs[i].first});
      parts.push_back(pairs[i].second ? one : optional(one));
    }
    if (extra) {
      parts.push_back(repeat(sequence({json_comma(), extra}), 0, kNoLimit));
    }
    return sequence(std::move(parts));
  };
  std::size_t leading = 0;
  while (leading < pairs.size() && !pairs[leading].second) ++leading;
  if (leading == 0 && !pairs.empty()) {
    return json_bracketed("{", sequence({pairs[0].first, behind(1)}), "}");
  }
  // The first member may be any of the leading optional ones: each rest is a
  // rule that begins with one member and goes on with the next rest. Members
  // stand in two places, so they are rules as well.
  for (auto& [pair, unused] : pairs) pair = call(rules_->add(path, pair));
  std::vector<ExprPtr> rests(pairs.size() + 1);
  const std::size_t last = std::min(leading + 1, pairs.size());
  rests[last] = call(rules_->add(path, behind(last)));
  for (std::size_t i = last; i-- > 1;) {
    ExprPtr one = sequence({json_comma(), pairs[i].first});
    rests[i] = call(rules_->add(
        path, sequence({pairs[i].second ? one : optional(one), rests[i + 1]})
    ));
  }
  std::vector<ExprPtr> ways;
  for (std::size_t i = 0; i < last; ++i) {
    ways.push_back(sequence({pairs[i].first, rests[i + 1]}));
  }
  const bool none_required = leading == pairs.size();
  if (none_required && extra) {
    ways.push_back(
        sequence({extra, repeat(sequence({json_comma(), extra}), 0, kNoLimit)})
    );
  }
  ExprPtr filled = json_bracketed("{", choice(std::move(ways)), "}");
  if (!none_required) return filled;
  return choice({filled, json_bracketed("{", nullptr, "}")});
}

ExprPtr SchemaReader::array(const Json& schema, const std::string& path) {
  const auto unique = schema.find("uniqueItems");
  if (unique != schema.end() && *unique != Json(false)) {
    unheld("the keyword 'uniqueItems' is not supported", path);
  }
  const int min = count_of(schema, "minItems", 0, path);
  int max = count_of(schema, "maxItems", kNoLimit, path);
  if (max != kNoLimit && max < min) {
    fail_schema("'maxItems' must not be below 'minItems'", path);
  }
  std::vector<ExprPtr> first;
  const auto prefix = schema.find("prefixItems");
  if (prefix != schema.end()) {
    if (!prefix->is_array()) fail_schema("'prefixItems' must be a list", path);
    for (std::size_t i = 0; i < prefix->size(); ++i) {
      const int place = static_cast<int>(i);
      // An array that ends before what no value can be is one all the same.
      if (place >= min && (max == kNoLimit || place < max) &&
          holds_nothing((*prefix)[i], path)) {
        max = place;
        break;
      }
      first.push_back(rule_of((*prefix)[i], place_in(path, "prefixItems", i)));
    }
  }
  const auto items = schema.find("items");
  const ExprPtr item = items == schema.end()
                           ? call(any_rules().value)
                           : rule_of(*items, place_in(path, "items"));
  if (max != kNoLimit && first.size() > static_cast<std::size_t>(max)) {
    first.resize(static_cast<std::size_t>(max));
  }
  if (max == 0) return json_bracketed("[", nullptr, "]");
  ExprPtr filled =
      json_bracketed("[", elements(first, item, min, max, path), "]");
  if (min > 0) return filled;
  return choice({filled, json_bracketed("[", nullptr, "]")});
}

// One element or more: those of the prefix, then items. What follows the first
// i of the prefix is a rule of its own, so that a long prefix is no deep
// expression.
ExprPtr SchemaReader::elements(
    const std::vector<ExprPtr>& first,
    const ExprPtr& item,
    int min,
    int max,
    const std::string& path
) {
  const auto behind = [&](const ExprPtr& one) {
    return sequence({json_comma(), one});
  };
  const int listed = std::max(1, static_cast<int>(first.size()));
  ExprPtr rest = repeat(
      behind(item), std::max(0, min - listed),
      max == kNoLimit ? kNoLimit : max - listed
  );
  for (int i = listed; i-- > 1;) {
    const auto at = static_cast<std::size_t>(i);
    rest = sequence({behind(first[at]), rest});
    if (i >= min) rest = optional(rest);
    if (i > 1) rest = call(rules_->add(path, rest));
  }
  return sequence({first.empty() ? item : first.front(), rest});
}

}  // namespace hearth::text::grammar
