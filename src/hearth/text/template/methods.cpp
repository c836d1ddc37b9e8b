// Methods of lists, tuples, dicts and numbers, and the lookup of all methods.
#include <algorithm>
#include <cmath>
#include <span>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/methods_impl.h"
#include "hearth/text/template/python.h"

namespace hearth::text::jinja {
namespace {

Value dict_get(const Value& self, Arguments& arguments) {
  const Parameters p("get", "key default", arguments);
  check_hashable(p.at(0));
  Meter::work(self.dict().entries.size() / 8);
  const Value* found = self.dict().find(p.at(0));
  return found != nullptr ? *found : p.get(1, Value());
}

Value dict_view(const Value& self, SequenceKind kind) {
  const auto& entries = self.dict().entries;
  Meter::work(entries.size());
  Meter::allocate(entries.size() * 4 * sizeof(Value));
  std::vector<Value> items;
  items.reserve(entries.size());
  for (const auto& [key, value] : entries) {
    if (kind == SequenceKind::kItems) {
      items.push_back(Value::tuple({key, value}));
    } else {
      items.push_back(kind == SequenceKind::kKeys ? key : value);
    }
  }
  return Value::sequence(kind, std::move(items));
}

Value dict_items(const Value& self, Arguments& arguments) {
  const Parameters none("items", "", arguments);
  return dict_view(self, SequenceKind::kItems);
}

Value dict_keys(const Value& self, Arguments& arguments) {
  const Parameters none("keys", "", arguments);
  return dict_view(self, SequenceKind::kKeys);
}

Value dict_values(const Value& self, Arguments& arguments) {
  const Parameters none("values", "", arguments);
  return dict_view(self, SequenceKind::kValues);
}

Value copy(const Value& self, Arguments& arguments) {
  const Parameters none("copy", "", arguments);
  return self;
}

Value sequence_index(const Value& self, Arguments& arguments) {
  const Parameters p("index", "value start stop", arguments);
  const auto& items = self.sequence().items;
  const auto count = static_cast<std::int64_t>(items.size());
  const auto bound = [&](std::size_t index, std::int64_t otherwise) {
    const std::int64_t at = p.integer(index, otherwise);
    return std::clamp<std::int64_t>(at < 0 ? at + count : at, 0, count);
  };
  const std::int64_t stop = bound(2, count);
  for (std::int64_t i = bound(1, 0); i < stop; ++i) {
    if (equal(items[static_cast<std::size_t>(i)], p.at(0))) return i;
  }
  if (self.is_kind(SequenceKind::kTuple)) {
    fail_value("tuple.index(x): x not in tuple");
  }
  fail_value(repr(p.at(0)) + " is not in list");
}

Value sequence_count(const Value& self, Arguments& arguments) {
  const Parameters p("count", "value", arguments);
  const auto& items = self.sequence().items;
  return static_cast<std::int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& item) {
        return equal(item, p.at(0));
      })
  );
}

Value is_integer(const Value& self, Arguments& arguments) {
  const Parameters none("is_integer", "", arguments);
  return std::floor(self.number()) == self.number();
}

constexpr Method kDictMethods[] = {
    {"get", dict_get},       {"items", dict_items}, {"keys", dict_keys},
    {"values", dict_values}, {"copy", copy},
};
constexpr Method kListMethods[] = {
    {"index", sequence_index},
    {"count", sequence_count},
    {"copy", copy}
};
constexpr Method kTupleMethods[] = {
    {"index", sequence_index},
    {"count", sequence_count}
};
constexpr Method kFloatMethods[] = {{"is_integer", is_integer}};

const Method* find_in(std::span<const Method> methods, std::string_view name) {
  const auto found = std::ranges::find(methods, name, &Method::name);
  return found == methods.end() ? nullptr : &*found;
}

const Method* find_method(const Value& value, std::string_view name) {
  if (value.is_dict()) return find_in(kDictMethods, name);
  if (value.is_string()) return find_string_method(name);
  if (value.is_kind(SequenceKind::kList)) return find_in(kListMethods, name);
  if (value.is_kind(SequenceKind::kTuple)) return find_in(kTupleMethods, name);
  return value.is_float() ? find_in(kFloatMethods, name) : nullptr;
}

}  // namespace

std::optional<Value> bind_method(const Value& value, std::string_view name) {
  const Method* method = find_method(value, name);
  if (method == nullptr) return std::nullopt;
  return Value(
      std::shared_ptr<Object>(std::make_shared<BoundMethod>(value, method))
  );
}

}  // namespace hearth::text::jinja
