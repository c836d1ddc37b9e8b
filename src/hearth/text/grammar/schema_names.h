#pragma once
// Finding names and values in schemas: hashed where there are many, so that
// no list of thousands is gone through for each of thousands.
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "hearth/base/json.h"

namespace hearth::text::grammar {

// The members of an object by name. The object must outlive it, unchanged.
class Members {
 public:
  Members() = default;
  explicit Members(const Json& object) : object_(&object) {}
  // Null where there is none, or no object.
  const Json* find(const std::string& name);

 private:
  // Looked through so many times, it is worth a table.
  static constexpr int kOften = 8;
  const Json* object_ = nullptr;
  int asked_ = 0;
  std::unordered_map<std::string_view, const Json*> table_;
};

// A list of names, likewise. What is no list has none.
class NameList {
 public:
  explicit NameList(const Json* list) : list_(list) {}
  bool has(const std::string& name);

 private:
  const Json* list_;
  int asked_ = 0;
  std::unordered_set<std::string_view> table_;
};

// A text that is equal for equal values: 1 and 1.0, and objects with their
// members in any order.
std::string value_key(const Json& value);

// The values of `a` that are in `b` too; both are lists.
Json common_values(const Json& a, const Json& b);

}  // namespace hearth::text::grammar
