// Two schemas that hold for the same value become one.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hearth/text/grammar/schema_merge_impl.h"

namespace hearth::text::grammar {
namespace {

void drop_annotations(Json& schema) {
  Json rest = Json::object();
  for (auto& [name, value] : schema.get_ref<Json::object_t&>()) {
    if (!says_nothing(name)) rest[name] = std::move(value);
  }
  schema = std::move(rest);
}

bool says_something(const Json& schema) {
  const auto items = schema.items();
  return std::any_of(items.begin(), items.end(), [](const auto& one) {
    return !says_nothing(one.key());
  });
}

// The larger or the smaller of two numbers.
Json extreme(const Json& a, const Json& b, bool larger) {
  return (a.get<double>() < b.get<double>()) == larger ? b : a;
}

Json as_list(const Json& value) {
  return value.is_array() ? value : Json::array({value});
}

// "integer" is one of the numbers.
Json common_types(const Json& a, const Json& b) {
  const Json left = as_list(a), right = as_list(b);
  const auto has = [](const Json& list, const char* name) {
    return std::find(list.begin(), list.end(), Json(name)) != list.end();
  };
  Json both = common_values(left, right);
  if (!has(both, "integer") && !has(both, "number") &&
      ((has(left, "integer") && has(right, "number")) ||
       (has(left, "number") && has(right, "integer")))) {
    both.push_back("integer");
  }
  return both;
}

// No value is left that both parts list.
bool lists_nothing(const Json& schema) {
  const auto several = schema.find("enum");
  if (several == schema.end() || !several->is_array()) return false;
  if (several->empty()) return true;
  const auto one = schema.find("const");
  return one != schema.end() &&
         common_values(*several, Json::array({*one})).empty();
}

const Json& or_else(const Json& schema, const char* name, const Json& other) {
  const auto found = schema.find(name);
  return found == schema.end() ? other : *found;
}

}  // namespace

bool says_nothing(std::string_view keyword) {
  constexpr std::array<std::string_view, 13> kAnnotations{
      "title", "description", "default",      "examples", "$schema",
      "$id",   "$comment",    "deprecated",   "readOnly", "writeOnly",
      "$defs", "definitions", "discriminator"
  };
  return std::find(kAnnotations.begin(), kAnnotations.end(), keyword) !=
         kAnnotations.end();
}

// An object that closes itself must list all that the other lists.
void SchemaReader::check_closed(
    const Json& a,
    const Json& b,
    const std::string& path
) {
  if (!a.contains("additionalProperties") ||
      a["additionalProperties"] == Json(true)) {
    return;
  }
  const Json none = Json::object();
  Members listed(or_else(a, "properties", none));
  for (const auto& [name, unused] : or_else(b, "properties", none).items()) {
    effort_.spend();
    if (listed.find(name) != nullptr) continue;
    return unheld(
        fmt::format(
            "'additionalProperties' of one part must not meet property '{}' "
            "of another",
            name
        ),
        path
    );
  }
}

Json SchemaReader::merged(Json a, const Json& b, const std::string& path) {
  if (a == Json(false) || b == Json(false)) return false;
  if (a == Json(true)) return b;
  if (b == Json(true)) return a;
  if (!a.is_object() || !b.is_object()) {
    fail_schema("a schema must be an object, true or false", path);
  }
  const Deeper deeper(*this, path);
  effort_.spend(a.size() + b.size());
  if (auto renamed = with_prefix_items(a, path)) a = std::move(*renamed);
  if (const auto renamed = with_prefix_items(b, path)) {
    return merged(std::move(a), *renamed, path);
  }
  // What says nothing need not be merged, nor does it stand in the way.
  drop_annotations(a);
  if (!says_something(b)) return a;
  if (a.contains("$ref") || a.contains("allOf")) {
    return merged(plain(a, path), b, path);
  }
  if (b.contains("$ref") || b.contains("allOf")) {
    return merged(std::move(a), plain(b, path), path);
  }
  check_closed(a, b, path);
  check_closed(b, a, path);
  const bool arrays = a.contains("prefixItems") || b.contains("prefixItems");
  if (arrays) merge_arrays(a, b, path);
  for (const auto& [name, value] : b.items()) {
    if (says_nothing(name)) continue;
    if (arrays && (name == "items" || name == "prefixItems")) continue;
    merge_keyword(a, name, value, path);
  }
  if (lists_nothing(a)) return false;
  return a;
}

void SchemaReader::merge_keyword(
    Json& into,
    const std::string& name,
    const Json& value,
    const std::string& path
) {
  const auto found = into.find(name);
  if (found == into.end()) {
    into[name] = value;
    return;
  }
  Json& mine = *found;
  if (mine == value) return;
  const bool numbers = mine.is_number() && value.is_number();
  const bool lists = mine.is_array() && value.is_array();
  if (name == "type") {
    mine = common_types(mine, value);
  } else if (name == "const") {
    const Json one = Json::array({mine}), other = Json::array({value});
    if (common_values(one, other).empty()) into["enum"] = Json::array();
  } else if (name == "enum" && lists) {
    effort_.spend((mine.size() + value.size()) * 8);
    mine = common_values(mine, value);
  } else if (name == "required" && lists) {
    effort_.spend(mine.size() + value.size());
    const Json before = mine;
    NameList names(&before);
    for (const Json& one : value) {
      if (!one.is_string() || !names.has(one.get_ref<const std::string&>())) {
        mine.push_back(one);
      }
    }
  } else if (numbers &&
             (name.starts_with("min") || name == "exclusiveMinimum")) {
    mine = extreme(mine, value, true);
  } else if (numbers &&
             (name.starts_with("max") || name == "exclusiveMaximum")) {
    mine = extreme(mine, value, false);
  } else if (name == "properties" && mine.is_object() && value.is_object()) {
    merge_properties(mine, value, path);
  } else if (name == "items" || name == "additionalProperties") {
    Json both = merged(std::move(mine), value, place_in(path, name));
    mine = std::move(both);
  } else {
    unheld(fmt::format("two different '{}' cannot be merged", name), path);
  }
}

void SchemaReader::merge_properties(
    Json& mine,
    const Json& value,
    const std::string& path
) {
  // The object is used as a list: looking for each name would take the square
  // of their number.
  std::vector<Json::object_t::value_type>& members =
      mine.get_ref<Json::object_t&>();
  effort_.spend(members.size() + value.size());
  constexpr std::size_t kFew = 8;
  std::unordered_map<std::string, std::size_t> places;
  if (value.size() > kFew) {
    for (std::size_t i = 0; i < members.size(); ++i) {
      places.emplace(members[i].first, i);
    }
  }
  const auto place_of = [&](const std::string& name) {
    if (value.size() > kFew) {
      const auto found = places.find(name);
      return found == places.end() ? members.size() : found->second;
    }
    const auto found =
        std::find_if(members.begin(), members.end(), [&](const auto& member) {
          return member.first == name;
        });
    return static_cast<std::size_t>(found - members.begin());
  };
  for (const auto& [name, schema] : value.items()) {
    const std::size_t at = place_of(name);
    if (at == members.size()) {
      members.emplace_back(name, schema);
      continue;
    }
    Json& one = members[at].second;
    Json both = merged(
        std::move(one), schema, place_in(place_in(path, "properties"), name)
    );
    one = std::move(both);
  }
}

bool SchemaReader::holds_nothing(const Json& schema, const std::string& path) {
  if (schema.is_boolean()) return !schema.get<bool>();
  if (!schema.is_object()) return false;
  if (schema.contains("allOf")) return holds_nothing(plain(schema, path), path);
  const auto type = schema.find("type");
  return type != schema.end() && type->is_array() && type->empty();
}

// Element by element: 'items' of a part holds for all elements beyond the
// prefix of that part, also where the other's prefix is longer.
void SchemaReader::merge_arrays(
    Json& a,
    const Json& b,
    const std::string& path
) {
  const Json none = Json::array();
  const Json anything = true;
  const Json left = or_else(a, "prefixItems", none);
  const Json& right = or_else(b, "prefixItems", none);
  const Json items = or_else(a, "items", anything);
  const Json& others = or_else(b, "items", anything);
  if (!left.is_array() || !right.is_array()) {
    fail_schema("'prefixItems' must be a list", path);
  }
  Json prefix = Json::array();
  const std::size_t count = std::max(left.size(), right.size());
  for (std::size_t i = 0; i < count; ++i) {
    prefix.push_back(merged(
        i < left.size() ? left[i] : items, i < right.size() ? right[i] : others,
        place_in(path, "prefixItems", i)
    ));
  }
  Json rest = merged(items, others, place_in(path, "items"));
  a["prefixItems"] = std::move(prefix);
  if (rest != anything) a["items"] = std::move(rest);
}

}  // namespace hearth::text::grammar
