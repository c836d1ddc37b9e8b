// JSON schemas to grammars: keywords, types, and what is refused.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/front_ends.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/grammar/recent.h"
#include "hearth/text/grammar/schema_impl.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text::grammar {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::uint64_t kUnitsPerSchema = 10;
constexpr std::size_t kMaxSchemas = 20000;
// A part of a path, and a path, are shortened to about so many bytes.
constexpr std::size_t kLongPart = 64, kLongPath = 512;

struct Keyword {
  std::string_view name;
  unsigned types;  // those it speaks of; 0: of none or of all
};

// The keywords that are obeyed or that say nothing about the value. All others
// are refused.
constexpr std::array kKeywords{
    Keyword{"type", 0},
    Keyword{"enum", 0},
    Keyword{"const", 0},
    Keyword{"anyOf", 0},
    Keyword{"oneOf", 0},
    Keyword{"allOf", 0},
    Keyword{"$ref", 0},
    Keyword{"$defs", 0},
    Keyword{"definitions", 0},
    Keyword{"title", 0},
    Keyword{"description", 0},
    Keyword{"default", 0},
    Keyword{"examples", 0},
    Keyword{"$schema", 0},
    Keyword{"$id", 0},
    Keyword{"$comment", 0},
    Keyword{"discriminator", 0},
    Keyword{"deprecated", 0},
    Keyword{"readOnly", 0},
    Keyword{"writeOnly", 0},
    Keyword{"properties", kObject},
    Keyword{"required", kObject},
    Keyword{"additionalProperties", kObject},
    Keyword{"items", kArray},
    Keyword{"prefixItems", kArray},
    Keyword{"minItems", kArray},
    Keyword{"maxItems", kArray},
    Keyword{"uniqueItems", kArray},
    Keyword{"minLength", kString},
    Keyword{"maxLength", kString},
    Keyword{"pattern", kString},
    Keyword{"format", kString},
    Keyword{"minimum", kInteger | kNumber},
    Keyword{"maximum", kInteger | kNumber},
    Keyword{"exclusiveMinimum", kInteger | kNumber},
    Keyword{"exclusiveMaximum", kInteger | kNumber},
    Keyword{"multipleOf", kInteger | kNumber}
};

const Keyword* find_keyword(std::string_view name) {
  const auto found = std::find_if(
      kKeywords.begin(), kKeywords.end(),
      [&](const Keyword& keyword) { return keyword.name == name; }
  );
  return found == kKeywords.end() ? nullptr : &*found;
}

unsigned type_named(const Json& name, const std::string& path) {
  static const std::map<std::string, unsigned> kTypes{
      {"null", kNull},       {"boolean", kBoolean},
      {"integer", kInteger}, {"number", kInteger | kNumber},
      {"string", kString},   {"array", kArray},
      {"object", kObject}
  };
  const auto found =
      name.is_string() ? kTypes.find(name.get<std::string>()) : kTypes.end();
  if (found == kTypes.end()) {
    fail_schema(
        fmt::format("'type' must be one of JSON's, got {}", to_json_line(name)),
        path
    );
  }
  return found->second;
}

}  // namespace

// Names, references and values stand in it, which may have any length.
void fail_schema(std::string_view what, std::string_view path) {
  constexpr std::size_t kMostBytes = 240;
  std::string_view shown = what.substr(0, kMostBytes);
  shown = shown.substr(0, text::valid_utf8_prefix(shown));
  const char* rest = shown.size() < what.size() ? "…" : "";
  throw UsageError(
      fmt::format("{} {}{}, at {}", kSchemaWho, shown, rest, path)
  );
}

std::string place_in(const std::string& path, std::string_view name) {
  if (path.size() > kLongPath) return path.ends_with("/…") ? path : path + "/…";
  std::string_view shown = name.substr(0, kLongPart);
  shown = shown.substr(0, text::valid_utf8_prefix(shown));
  return fmt::format(
      "{}/{}{}", path, shown, shown.size() < name.size() ? "…" : ""
  );
}

std::string place_in(const std::string& path, const char* list, std::size_t i) {
  return place_in(place_in(path, list), fmt::to_string(i));
}

unsigned type_of(const Json& value) {
  if (value.is_null()) return kNull;
  if (value.is_boolean()) return kBoolean;
  if (value.is_number_integer()) return kInteger;
  if (value.is_number()) {
    // The value is not converted by way of an integer, which the largest do not
    // fit.
    const double number = value.get<double>();
    return number == std::trunc(number) ? kInteger : kNumber;
  }
  if (value.is_string()) return kString;
  return value.is_array() ? kArray : kObject;
}

unsigned types_of(const Json& schema, const std::string& path) {
  const auto found = schema.find("type");
  if (found == schema.end()) {
    unsigned types = 0;
    for (const auto& [name, unused] : schema.items()) {
      if (const Keyword* keyword = find_keyword(name)) types |= keyword->types;
    }
    return types == 0 ? unsigned{kAnyType} : types;
  }
  if (!found->is_array()) return type_named(*found, path);
  unsigned types = 0;
  for (const Json& name : *found) types |= type_named(name, path);
  return types;
}

int SchemaReader::count_of(
    const Json& schema,
    const char* keyword,
    int otherwise,
    const std::string& path
) const {
  constexpr int kMost = 100000;
  const auto found = schema.find(keyword);
  if (found == schema.end()) return otherwise;
  const bool whole = found->is_number() && type_of(*found) == kInteger;
  const double count = whole ? found->get<double>() : -1;
  if (count >= 0 && count <= kMost) return static_cast<int>(count);
  const std::string what = fmt::format(
      "'{}' must be a whole number up to {}, got {}", keyword, kMost,
      to_json_line(*found)
  );
  if (count < 0) fail_schema(what, path);
  unheld(what, path);
  return otherwise;
}

int SchemaReader::read(Rules& rules) {
  rules_ = &rules;
  const int root = rules.add("#");
  references_["#"] = root;
  waiting_.push_back({root, &root_, "#"});
  while (!waiting_.empty()) {
    const Waiting next = std::move(waiting_.back());
    waiting_.pop_back();
    ExprPtr body = value(*next.schema, next.path);
    rules.rules[static_cast<std::size_t>(next.rule)].body = std::move(body);
  }
  return root;
}

ExprPtr SchemaReader::rule_of(const Json& schema, const std::string& path) {
  // A body is made at once: what waits is only what is referred to, so that
  // the depth of schemas is counted.
  ExprPtr body = value(schema, path);
  if (body->kind == Expr::Kind::rule) return body;
  return call(rules_->add(path, std::move(body)));
}

std::optional<Json> SchemaReader::with_prefix_items(
    const Json& schema,
    const std::string& path
) const {
  const auto list = schema.is_object() ? schema.find("items") : schema.end();
  if (list == schema.end() || !list->is_array()) return std::nullopt;
  unheld("'items' must be a schema; lists are 'prefixItems'", path);
  Json out = Json::object();
  for (const auto& [name, one] : schema.items()) {
    if (name == "items") {
      out["prefixItems"] = one;
    } else if (name != "prefixItems") {
      out[name == "additionalItems" ? "items" : name] = one;
    }
  }
  return out;
}

std::optional<Json> SchemaReader::without_unknown(
    const Json& schema,
    const std::string& path
) const {
  const auto items = schema.items();
  const auto unknown =
      std::find_if(items.begin(), items.end(), [](const auto& one) {
        return find_keyword(one.key()) == nullptr;
      });
  if (unknown == items.end()) return std::nullopt;
  unheld(fmt::format("the keyword '{}' is not supported", unknown.key()), path);
  Json copy = Json::object();
  for (const auto& [name, one] : schema.items()) {
    if (find_keyword(name) != nullptr) copy[name] = one;
  }
  return copy;
}

ExprPtr SchemaReader::value(const Json& given, const std::string& path) {
  effort_.spend(kUnitsPerSchema);
  if (++seen_ > kMaxSchemas) {
    fail_schema(
        fmt::format("there must be at most {} schemas", kMaxSchemas), path
    );
  }
  if (given.is_boolean()) {
    return given.get<bool>() ? call(any_rules().value) : choice({});
  }
  if (!given.is_object()) {
    fail_schema("a schema must be an object, true or false", path);
  }
  if (++depth_ > kMaxDepth) {
    fail_schema(
        fmt::format("schemas must nest at most {} deep", kMaxDepth), path
    );
  }
  const std::optional<Json> renamed = with_prefix_items(given, path);
  const Json& known = renamed ? *renamed : given;
  const std::optional<Json> cut = without_unknown(known, path);
  const Json& schema = cut ? *cut : known;
  ExprPtr made;
  if (schema.contains("$ref")) {
    made = referred(schema, path);
  } else if (schema.contains("allOf")) {
    made = value(plain(schema, path), path);
  } else if (schema.contains("anyOf") || schema.contains("oneOf")) {
    made = branches(schema, path);
  } else if (schema.contains("enum") || schema.contains("const")) {
    made = listed(schema, path);
  } else {
    made = typed(schema, types_of(schema, path), path);
  }
  --depth_;
  return made;
}

ExprPtr SchemaReader::typed(
    const Json& schema,
    unsigned types,
    const std::string& path
) {
  const auto items = schema.items();
  const bool free = std::none_of(items.begin(), items.end(), [](const auto& i) {
    return find_keyword(i.key())->types != 0;
  });
  if (types == kAnyType && free) return call(any_rules().value);
  if ((types & kNumber) != 0) types &= ~unsigned{kInteger};
  std::vector<ExprPtr> ways;
  for (unsigned type = 1; type < kAnyType; type <<= 1) {
    if ((types & type) != 0) {
      ways.push_back(one_type(schema, static_cast<JsonType>(type), path));
    }
  }
  return choice(std::move(ways));
}

ExprPtr SchemaReader::one_type(
    const Json& schema,
    JsonType type,
    const std::string& path
) {
  switch (type) {
    case kNull:
      return text("null");
    case kBoolean:
      return choice({text("true"), text("false")});
    case kInteger: {
      const auto step = schema.find("multipleOf");
      if (step != schema.end() && *step != Json(1)) {
        unheld("the keyword 'multipleOf' is not supported", path);
      }
      return integer(schema, path);
    }
    case kNumber:
      return number_of(schema, path);
    case kString:
      return string(schema, path);
    case kArray:
      return array(schema, path);
    default:
      return object(schema, path);
  }
}

const AnyJson& SchemaReader::any_rules() {
  if (!any_) any_ = add_any_json(*rules_);
  return *any_;
}

ExprPtr SchemaReader::listed(const Json& schema, const std::string& path) {
  for (const auto& [name, unused] : schema.items()) {
    if (find_keyword(name)->types != 0) {
      unheld(
          fmt::format("'{}' beside 'enum' or 'const' is not supported", name),
          path
      );
    }
  }
  Json values = Json::array();
  if (schema.contains("enum")) {
    values = schema["enum"];
    if (!values.is_array()) fail_schema("'enum' must be a list", path);
    if (schema.contains("const") &&
        std::find(values.begin(), values.end(), schema["const"]) ==
            values.end()) {
      values = Json::array();
    }
  }
  if (schema.contains("const")) {
    if (!schema.contains("enum") || !values.empty()) {
      values = Json::array({schema["const"]});
    }
  }
  const unsigned types = types_of(schema, path);
  std::vector<ExprPtr> ways;
  effort_.spend(values.size() * kUnitsPerSchema);
  for (const Json& one : values) {
    if ((types & type_of(one)) != 0) ways.push_back(json_literal(one));
  }
  if (ways.empty()) fail_schema("no value is left to choose", path);
  return choice(std::move(ways));
}

Rules schema_rules(const Json& schema, bool strict, Effort& effort) {
  Rules rules;
  rules.root = SchemaReader(schema, strict, effort).read(rules);
  return rules;
}

Rules any_json_rules() {
  Rules rules;
  rules.root = add_any_json(rules).object;
  return rules;
}

}  // namespace hearth::text::grammar

namespace hearth::text {

std::shared_ptr<const Grammar> grammar_of_schema(
    const Json& schema,
    const GrammarOptions& options
) {
  return grammar::recent_grammar(
      fmt::format(
          "schema {} {}", options.strict ? "strict" : "wide",
          to_json_line(schema)
      ),
      grammar::kSchemaWho, options.effort, [&](Effort& used) {
        return grammar::schema_rules(schema, options.strict, used);
      }
  );
}

std::shared_ptr<const Grammar> grammar_of_any_json() {
  return grammar::recent_grammar(
      "json", grammar::kSchemaWho, nullptr,
      [](Effort&) { return grammar::any_json_rules(); }
  );
}

}  // namespace hearth::text
