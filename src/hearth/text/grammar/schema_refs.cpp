// References, and schemas that take in what they refer to.
#include <utility>

#include <fmt/format.h>

#include "hearth/text/grammar/schema_impl.h"
#include "hearth/text/grammar/schema_merge_impl.h"

namespace hearth::text::grammar {
namespace {

constexpr int kMaxMerges = 4000;

// The parts of "#/a/b": names, or nothing where it is no such pointer.
bool pointer_parts(std::string_view text, std::vector<std::string>& parts) {
  while (!text.empty()) {
    if (text.front() != '/') return false;
    text.remove_prefix(1);
    std::string& part = parts.emplace_back();
    while (!text.empty() && text.front() != '/') {
      char c = text.front();
      text.remove_prefix(1);
      if (c == '~') {
        if (text.empty() || (text[0] != '0' && text[0] != '1')) return false;
        c = text[0] == '0' ? '~' : '/';
        text.remove_prefix(1);
      }
      part += c;
    }
  }
  return true;
}

const Json* element(const Json& list, const std::string& name) {
  const bool digits = !name.empty() && name.size() < 8 &&
                      name.find_first_not_of("0123456789") == name.npos &&
                      (name == "0" || name[0] != '0');
  if (!digits) return nullptr;
  const auto i = static_cast<std::size_t>(std::stoul(name));
  return i < list.size() ? &list[i] : nullptr;
}

}  // namespace

const Json* SchemaReader::member(const Json& object, const std::string& name) {
  constexpr std::size_t kMany = 32;
  if (object.is_array()) return element(object, name);
  if (!object.is_object()) return nullptr;
  if (object.size() < kMany) return Members(object).find(name);
  const auto [known, added] = members_.try_emplace(&object, object);
  if (added) effort_.spend(object.size());
  return known->second.find(name);
}

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
  std::vector<std::string> parts;
  const Json* at = pointer_parts(std::string_view(reference).substr(1), parts)
                       ? &root_
                       : nullptr;
  for (std::size_t i = 0; at != nullptr && i < parts.size(); ++i) {
    effort_.spend();
    at = member(*at, parts[i]);
  }
  if (at != nullptr) return *at;
  fail_schema(
      fmt::format("'$ref' points to '{}', which is not there", reference), path
  );
}

ExprPtr SchemaReader::referred(const Json& schema, const std::string& path) {
  std::size_t said = 0;
  for (const auto& [name, unused] : schema.items()) {
    if (!says_nothing(name)) ++said;
  }
  if (said > 1) return value(plain(schema, path), path);
  const Json& given = schema["$ref"];
  if (!given.is_string()) fail_schema("'$ref' must be a text", path);
  const std::string& reference = given.get_ref<const std::string&>();
  const Json& found = target(reference, path);
  const auto [known, added] = references_.try_emplace(reference, -1);
  if (added) {
    const std::string place = place_in("", reference).substr(1);
    known->second = rules_->add(place);
    waiting_.push_back({known->second, &found, place});
  }
  return call(known->second);
}

Json SchemaReader::plain(const Json& schema, const std::string& path) {
  if (!schema.is_object()) return schema;
  effort_.spend(schema.size() + 1);
  const bool refers = schema.contains("$ref"), all = schema.contains("allOf");
  if (!refers && !all) return schema;
  const Deeper deeper(*this, path);
  if (++merges_ > kMaxMerges) {
    fail_schema(
        fmt::format("at most {} schemas must be merged", kMaxMerges), path
    );
  }
  Json result = Json::object();
  for (const auto& [name, value] : schema.items()) {
    if (name != "$ref" && name != "allOf") result[name] = value;
  }
  if (refers) {
    const Json& given = schema["$ref"];
    if (!given.is_string()) fail_schema("'$ref' must be a text", path);
    const Json& found = target(given.get_ref<const std::string&>(), path);
    result = merged(std::move(result), plain(found, path), path);
  }
  if (!all || !result.is_object()) return result;
  const Json& parts = schema["allOf"];
  if (!parts.is_array() || parts.empty()) {
    fail_schema("'allOf' must be a list of schemas", path);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    effort_.spend();
    const std::string place = place_in(path, "allOf", i);
    result = parts[i].is_object()
                 ? merged(std::move(result), plain(parts[i], place), place)
                 : merged(std::move(result), parts[i], place);
  }
  return result;
}

}  // namespace hearth::text::grammar
