#include "hearth/text/grammar/schema_names.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace hearth::text::grammar {

const Json* Members::find(const std::string& name) {
  if (object_ == nullptr || !object_->is_object()) return nullptr;
  if (++asked_ <= kOften) {
    const auto found = object_->find(name);
    return found == object_->end() ? nullptr : &*found;
  }
  if (table_.empty()) {
    for (const auto& [key, value] : object_->get_ref<const Json::object_t&>()) {
      table_.emplace(key, &value);
    }
  }
  const auto found = table_.find(name);
  return found == table_.end() ? nullptr : found->second;
}

bool NameList::has(const std::string& name) {
  constexpr int kOften = 8;
  if (list_ == nullptr || !list_->is_array()) return false;
  const auto is = [&](const Json& one) {
    return one.is_string() && one.get_ref<const std::string&>() == name;
  };
  if (++asked_ <= kOften) {
    return std::any_of(list_->begin(), list_->end(), is);
  }
  if (table_.empty()) {
    for (const Json& one : *list_) {
      if (one.is_string()) table_.insert(one.get_ref<const std::string&>());
    }
  }
  return table_.contains(name);
}

std::string value_key(const Json& value) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    constexpr double kExact = 9007199254740992.0;
    return number == std::floor(number) && std::abs(number) < kExact
               ? fmt::format("{:.0f}", number == 0 ? 0.0 : number)
               : fmt::format("{}", number);
  }
  if (!value.is_structured()) return to_json_line(value);
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const Json& one : value) parts.push_back(value_key(one));
  } else {
    for (const auto& [name, one] : value.items()) {
      parts.push_back(to_json_line(Json(name)) + ":" + value_key(one));
    }
    std::sort(parts.begin(), parts.end());
  }
  return fmt::format(
      "{}{}{}", value.is_array() ? "[" : "{", fmt::join(parts, ","),
      value.is_array() ? "]" : "}"
  );
}

Json common_values(const Json& a, const Json& b) {
  std::unordered_set<std::string> others;
  for (const Json& value : b) others.insert(value_key(value));
  Json both = Json::array();
  for (const Json& value : a) {
    if (others.contains(value_key(value))) both.push_back(value);
  }
  return both;
}

}  // namespace hearth::text::grammar
