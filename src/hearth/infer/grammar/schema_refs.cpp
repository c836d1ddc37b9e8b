#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "hearth/infer/grammar/schema_impl.h"

namespace hearth::infer::grammar {
namespace {

constexpr int kMaxReferences = 32;
constexpr int kMaxMerges = 4000;

// What may stand beside a reference without changing what it says.
bool says_nothing(std::string_view keyword) {
  constexpr std::array<std::string_view, 12> kAnnotations{
      "title",    "description", "default",  "examples",
      "$schema",  "$id",         "$comment", "deprecated",
      "readOnly", "writeOnly",   "$defs",    "definitions"
  };
  return std::find(kAnnotations.begin(), kAnnotations.end(), keyword) !=
         kAnnotations.end();
}

Json without_annotations(const Json& schema) {
  Json rest = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (!says_nothing(name)) rest[name] = value;
  }
  return rest;
}

// The larger or the smaller of two numbers.
Json extreme(const Json& a, const Json& b, bool larger) {
  return (a.get<double>() < b.get<double>()) == larger ? b : a;
}

Json common_values(const Json& a, const Json& b) {
  Json both = Json::array();
  for (const Json& value : a) {
    if (std::find(b.begin(), b.end(), value) != b.end()) both.push_back(value);
  }
  return both;
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

// An object that closes itself must list all that the other lists.
void check_closed(const Json& a, const Json& b, const std::string& path) {
  if (!a.contains("additionalProperties") ||
      a["additionalProperties"] == Json(true)) {
    return;
  }
  const Json none = Json::object();
  const Json& listed = a.contains("properties") ? a["properties"] : none;
  const Json& others = b.contains("properties") ? b["properties"] : none;
  for (const auto& [name, unused] : others.items()) {
    if (!listed.contains(name)) {
      fail_schema(
          fmt::format(
              "'additionalProperties' of one part must not meet property '{}' "
              "of another",
              name
          ),
          path
      );
    }
  }
}

}  // namespace

const Json& SchemaReader::target(
    const std::string& reference,
    const std::string& path
) {
  if (reference != "#" && !reference.starts_with("#/")) {
    fail_schema(
        fmt::format("'$ref' must point into the schema, got '{}'", reference),
        path
    );
  }
  try {
    const Json::json_pointer pointer(reference.substr(1));
    if (root_.contains(pointer)) return root_.at(pointer);
  } catch (const Json::exception&) {
    // Not a pointer at all; refused below like one that points nowhere.
  }
  fail_schema(
      fmt::format("'$ref' points to '{}', which is not there", reference), path
  );
}

ExprPtr SchemaReader::referred(const Json& schema, const std::string& path) {
  const Json rest = without_annotations(schema);
  if (rest.size() > 1) return value(plain(schema, path), path);
  if (!schema["$ref"].is_string()) fail_schema("'$ref' must be a text", path);
  const std::string reference = schema["$ref"].get<std::string>();
  const Json& found = target(reference, path);
  const auto [known, added] = references_.try_emplace(reference, -1);
  if (added) {
    known->second = rules_->add(reference);
    waiting_.push_back({known->second, found, reference});
  }
  return call(known->second);
}

Json SchemaReader::plain(
    const Json& schema,
    const std::string& path,
    int depth
) {
  if (!schema.is_object()) return schema;
  if (++merges_ > kMaxMerges) {
    fail_schema(
        fmt::format("at most {} schemas must be merged", kMaxMerges), path
    );
  }
  if (depth > kMaxReferences) {
    fail_schema(
        fmt::format(
            "references that are merged must be at most {} deep", kMaxReferences
        ),
        path
    );
  }
  Json result = schema;
  if (result.contains("$ref")) {
    if (!result["$ref"].is_string()) fail_schema("'$ref' must be a text", path);
    const Json& found = target(result["$ref"].get<std::string>(), path);
    result.erase("$ref");
    result = merged(result, plain(found, path, depth + 1), path);
  }
  if (result.is_object() && result.contains("allOf")) {
    const Json parts = result["allOf"];
    if (!parts.is_array() || parts.empty()) {
      fail_schema("'allOf' must be a list of schemas", path);
    }
    result.erase("allOf");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string place = fmt::format("{}/allOf/{}", path, i);
      result = merged(result, plain(parts[i], place, depth + 1), place);
    }
  }
  return result;
}

Json SchemaReader::merged(
    const Json& a,
    const Json& b,
    const std::string& path
) {
  if (a == Json(false) || b == Json(false)) return false;
  if (a == Json(true)) return b;
  if (b == Json(true)) return a;
  if (!a.is_object() || !b.is_object()) {
    fail_schema("a schema must be an object, true or false", path);
  }
  // What says nothing need not be merged, nor does it stand in the way.
  Json left = without_annotations(a), right = without_annotations(b);
  if (left.empty()) return right;
  if (right.empty()) return left;
  if (left.contains("$ref") || left.contains("allOf")) {
    return merged(plain(left, path, 1), right, path);
  }
  if (right.contains("$ref") || right.contains("allOf")) {
    return merged(left, plain(right, path, 1), path);
  }
  check_closed(left, right, path);
  check_closed(right, left, path);
  Json result = left;
  for (const auto& [name, value] : right.items()) {
    if (!result.contains(name)) {
      result[name] = value;
      continue;
    }
    Json& mine = result[name];
    if (mine == value) continue;
    const bool numbers = mine.is_number() && value.is_number();
    if (name == "type") {
      mine = common_types(mine, value);
    } else if (name == "enum" && mine.is_array() && value.is_array()) {
      mine = common_values(mine, value);
    } else if (name == "required" && mine.is_array() && value.is_array()) {
      for (const Json& one : value) {
        if (std::find(mine.begin(), mine.end(), one) == mine.end()) {
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
      for (const auto& [property, schema] : value.items()) {
        mine[property] =
            mine.contains(property)
                ? merged(
                      mine[property], schema, path + "/properties/" + property
                  )
                : schema;
      }
    } else if (name == "items" || name == "additionalProperties") {
      mine = merged(mine, value, path + "/" + name);
    } else {
      fail_schema(
          fmt::format("two different '{}' cannot be merged", name), path
      );
    }
  }
  return result;
}

std::string overlap(const Json& a, const Json& b) {
  if (a == Json(false) || b == Json(false)) return "";
  if (!a.is_object() || !b.is_object()) return "one of them takes anything";
  const auto values = [](const Json& schema) {
    if (schema.contains("const")) return Json::array({schema["const"]});
    return schema.contains("enum") && schema["enum"].is_array() ? schema["enum"]
                                                                : Json();
  };
  const unsigned both = types_of(a, "#") & types_of(b, "#");
  const Json left = values(a), right = values(b);
  if (left.is_array() && right.is_array()) {
    return common_values(left, right).empty() ? ""
                                              : "the same value is in both";
  }
  const auto apart = [](const Json& listed, unsigned types) {
    return std::none_of(listed.begin(), listed.end(), [&](const Json& value) {
      return (type_of(value) & types) != 0;
    });
  };
  // A schema without a type takes values of all types that its keywords do not
  // speak of, so only stated types keep two apart.
  const bool stated_a = a.contains("type"), stated_b = b.contains("type");
  if (left.is_array() && stated_b && apart(left, types_of(b, "#"))) return "";
  if (right.is_array() && stated_a && apart(right, types_of(a, "#"))) return "";
  if (!stated_a || !stated_b) return "their types are not stated";
  if (both == 0) return "";
  if (both != kObject) return "their types meet";
  // Objects that both demand a property, with values that differ.
  const auto demanded = [&](const Json& schema, const std::string& name) {
    const auto list = schema.find("required");
    return list != schema.end() && list->is_array() &&
           std::find(list->begin(), list->end(), Json(name)) != list->end();
  };
  if (a.contains("properties") && b.contains("properties")) {
    for (const auto& [name, schema] : a["properties"].items()) {
      if (!demanded(a, name) || !demanded(b, name) ||
          !b["properties"].contains(name)) {
        continue;
      }
      if (overlap(schema, b["properties"][name]).empty()) return "";
    }
  }
  return "no property that both require tells them apart";
}

}  // namespace hearth::infer::grammar
