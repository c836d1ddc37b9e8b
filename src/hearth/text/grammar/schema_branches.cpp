// anyOf and oneOf: one of several schemas holds.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "hearth/text/grammar/schema_impl.h"

namespace hearth::text::grammar {
namespace {

// The least work of comparing one branch with another.
constexpr std::uint64_t kUnitsPerPair = 100;

bool states_object(const Json& schema) {
  const auto type = schema.find("type");
  return type != schema.end() && *type == Json("object");
}

// Whether the property is demanded, and which values it may have.
std::optional<std::vector<const Json*>> mark_of(
    const Json& schema,
    const std::string& name
) {
  const auto required = schema.find("required");
  if (required == schema.end() || !NameList(&*required).has(name)) return {};
  const auto properties = schema.find("properties");
  if (properties == schema.end()) return {};
  const Json* one = Members(*properties).find(name);
  return one != nullptr && one->is_object() ? listed_values(*one)
                                            : std::nullopt;
}

// Whether every branch has values, and no two have one in common.
template <typename ValuesOf>
bool all_differ(
    const std::vector<Json>& branches,
    Effort& effort,
    const ValuesOf& values_of
) {
  std::unordered_set<std::string> seen;
  for (const Json& branch : branches) {
    const auto values = values_of(branch);
    if (!values) return false;
    std::unordered_set<std::string> own;
    for (const Json* value : *values) own.insert(value_key(*value));
    effort.spend(own.size() * 8 + 1);
    for (const std::string& value : own) {
      if (!seen.insert(value).second) return false;
    }
  }
  return true;
}

// Most lists of branches are told apart by what they list themselves, or by
// one property that all of them demand: that takes no pairs.
bool quickly_apart(const std::vector<Json>& branches, Effort& effort) {
  constexpr int kMostMarks = 16;
  if (all_differ(branches, effort, listed_values)) return true;
  if (!std::all_of(branches.begin(), branches.end(), states_object)) {
    return false;
  }
  const auto required = branches.front().find("required");
  if (required == branches.front().end() || !required->is_array()) return false;
  int tried = 0;
  for (const Json& name : *required) {
    if (!name.is_string() || ++tried > kMostMarks) continue;
    const bool apart = all_differ(branches, effort, [&](const Json& branch) {
      return mark_of(branch, name.get<std::string>());
    });
    if (apart) return true;
  }
  return false;
}

}  // namespace

std::optional<std::vector<const Json*>> listed_values(const Json& schema) {
  if (!schema.is_object()) return {};
  const auto one = schema.find("const");
  if (one != schema.end()) return std::vector{&*one};
  const auto several = schema.find("enum");
  if (several == schema.end() || !several->is_array()) return {};
  std::vector<const Json*> values;
  for (const Json& value : *several) values.push_back(&value);
  return values;
}

// OpenAPI's discriminator: the property must be there, and where its values
// are mapped to references, those of this branch.
Json SchemaReader::marked(const Json& discriminator, const Json& branch) const {
  Json says = Json::object();
  const auto name = discriminator.is_object()
                        ? discriminator.find("propertyName")
                        : discriminator.end();
  if (!discriminator.is_object() || name == discriminator.end() ||
      !name->is_string()) {
    return says;
  }
  says["required"] = Json::array({*name});
  const auto mapping = discriminator.find("mapping");
  if (mapping == discriminator.end() || !mapping->is_object() ||
      !branch.is_object() || !branch.contains("$ref")) {
    return says;
  }
  Json values = Json::array();
  for (const auto& [value, reference] : mapping->items()) {
    if (reference == branch["$ref"]) values.push_back(value);
  }
  if (values.empty()) return says;
  says["properties"] = Json::object();
  says["properties"][name->get<std::string>()] = {{"enum", values}};
  return says;
}

ExprPtr SchemaReader::branches(const Json& schema, const std::string& path) {
  const bool any = schema.contains("anyOf");
  if (any && schema.contains("oneOf")) {
    unheld("'anyOf' beside 'oneOf' is not supported", path);
  }
  const char* keyword = any ? "anyOf" : "oneOf";
  const Json& list = schema[keyword];
  if (!list.is_array() || list.empty()) {
    fail_schema(fmt::format("'{}' must be a list of schemas", keyword), path);
  }
  Json rest = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (name != "anyOf" && name != "oneOf" && !says_nothing(name)) {
      rest[name] = value;
    }
  }
  const auto discriminator = schema.find("discriminator");
  std::vector<Json> made;
  std::vector<ExprPtr> ways;
  for (std::size_t i = 0; i < list.size(); ++i) {
    effort_.spend();
    const std::string place = place_in(path, keyword, i);
    if (list[i] == Json(false)) {
      value(list[i], place);
      continue;
    }
    Json branch = list[i];
    if (discriminator != schema.end()) {
      const Json says = marked(*discriminator, branch);
      if (!says.empty()) branch = merged(std::move(branch), says, place);
    }
    if (!rest.empty()) branch = merged(rest, branch, place);
    ways.push_back(value(branch, place));
    if (!any && strict_) made.push_back(plain(branch, place));
  }
  check_apart(made, path);
  return choice(std::move(ways));
}

void SchemaReader::check_apart(
    const std::vector<Json>& branches,
    const std::string& path
) {
  if (branches.size() < 2 || quickly_apart(branches, effort_)) return;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      effort_.spend(kUnitsPerPair);
      const std::string why = overlap(branches[j], branches[i], effort_);
      if (why.empty()) continue;
      fail_schema(
          fmt::format(
              "branches {} and {} of 'oneOf' may both hold ({}): 'anyOf' "
              "says that",
              j, i, why
          ),
          path
      );
    }
  }
}

std::string overlap(const Json& a, const Json& b, Effort& effort) {
  if (a == Json(false) || b == Json(false)) return "";
  if (!a.is_object() || !b.is_object()) return "one of them takes anything";
  const unsigned both = types_of(a, "#") & types_of(b, "#");
  const auto left = listed_values(a), right = listed_values(b);
  if (left && right) {
    effort.spend((left->size() + right->size()) * 8);
    std::unordered_set<std::string> seen;
    for (const Json* value : *left) seen.insert(value_key(*value));
    const bool meet = std::ranges::any_of(*right, [&](const Json* value) {
      return seen.contains(value_key(*value));
    });
    return meet ? "the same value is in both" : "";
  }
  const auto apart = [](const std::vector<const Json*>& listed,
                        unsigned types) {
    return std::none_of(listed.begin(), listed.end(), [&](const Json* value) {
      return (type_of(*value) & types) != 0;
    });
  };
  // A schema without a type takes values of all types that its keywords do not
  // speak of, so only stated types keep two apart.
  const bool stated_a = a.contains("type"), stated_b = b.contains("type");
  if (left && stated_b && apart(*left, types_of(b, "#"))) return "";
  if (right && stated_a && apart(*right, types_of(a, "#"))) return "";
  if (!stated_a || !stated_b) return "their types are not stated";
  if (both == 0) return "";
  if (both != kObject) return "their types meet";
  // Objects that both demand a property, with values that differ.
  const auto list_of = [](const Json& schema) {
    const auto list = schema.find("required");
    return NameList(list == schema.end() ? nullptr : &*list);
  };
  NameList first = list_of(a), second = list_of(b);
  const auto mine = a.find("properties"), others = b.find("properties");
  if (mine != a.end() && others != b.end() && mine->is_object()) {
    Members found(*others);
    for (const auto& [name, schema] : mine->items()) {
      effort.spend();
      if (!first.has(name) || !second.has(name)) continue;
      const Json* other = found.find(name);
      if (other != nullptr && overlap(schema, *other, effort).empty()) {
        return "";
      }
    }
  }
  return "no property that both require tells them apart";
}

}  // namespace hearth::text::grammar
