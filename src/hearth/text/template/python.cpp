#include "hearth/text/template/python.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {

void fail_undefined(const Undefined& undefined) {
  throw Failure{
      undefined.unsafe ? TemplateFault::kSecurity : TemplateFault::kUndefined,
      undefined.message()
  };
}

bool truthy(const Value& value) {
  if (value.is_bool()) return value.boolean();
  if (value.is_string()) return !value.text().empty();
  if (value.is_none() || value.is_undefined()) return false;
  if (value.is_number()) return value.number() != 0;
  if (value.is_dict()) return !value.dict().entries.empty();
  if (value.is_kind(SequenceKind::kGenerator)) return true;
  return !value.is_sequence() || !value.sequence().items.empty();
}

std::string_view type_name(const Value& value) {
  if (value.is_none()) return "NoneType";
  if (value.is_bool()) return "bool";
  if (value.is_int()) return "int";
  if (value.is_float()) return "float";
  if (value.is_string()) return "str";
  if (value.is_dict()) return "dict";
  if (value.is_undefined()) return "Undefined";
  if (value.is_object()) return value.object().type_name();
  switch (value.sequence().kind) {
    case SequenceKind::kList:
      return "list";
    case SequenceKind::kTuple:
      return "tuple";
    case SequenceKind::kGenerator:
      return "generator";
    case SequenceKind::kRange:
      return "range";
    case SequenceKind::kKeys:
      return "dict_keys";
    case SequenceKind::kValues:
      return "dict_values";
    case SequenceKind::kItems:
      return "dict_items";
  }
  return "object";
}

std::string holder_name(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is_object()) return value.object().holder_name();
  return std::string(type_name(value)) + " object";
}

bool equal(const Value& a, const Value& b) {
  Meter::work();
  if (a.is_number() && b.is_number()) {
    if (a.is_float() || b.is_float()) return a.number() == b.number();
    return a.integer() == b.integer();
  }
  if (a.is_string() && b.is_string()) {
    Meter::work(std::min(a.text().size(), b.text().size()) / 64);
    return a.text() == b.text();
  }
  if (a.is_none() || b.is_none()) return a.is_none() && b.is_none();
  if (a.is_undefined() || b.is_undefined()) {
    return a.is_undefined() && b.is_undefined();
  }
  if (a.is_sequence() && b.is_sequence()) {
    const Sequence &x = a.sequence(), &y = b.sequence();
    if (&x == &y) return true;
    const bool views =
        x.kind == SequenceKind::kGenerator || x.kind == SequenceKind::kValues;
    if (x.kind != y.kind || views) return false;
    return std::equal(
        x.items.begin(), x.items.end(), y.items.begin(), y.items.end(), equal
    );
  }
  if (a.is_dict() && b.is_dict()) {
    const Dict &x = a.dict(), &y = b.dict();
    if (&x == &y) return true;
    if (x.entries.size() != y.entries.size()) return false;
    return std::all_of(
        x.entries.begin(), x.entries.end(), [&](const auto& entry) {
          Meter::work(y.entries.size() / 8);
          const Value* other = y.find(entry.first);
          return other != nullptr && equal(entry.second, *other);
        }
    );
  }
  return a.is_object() && b.is_object() && &a.object() == &b.object();
}

bool ordered(std::string_view op, const Value& a, const Value& b) {
  Meter::work();
  require_defined(a);
  require_defined(b);
  const auto decide = [op](const auto& x, const auto& y) {
    if (op == "<") return x < y;
    if (op == "<=") return x <= y;
    return op == ">" ? x > y : x >= y;
  };
  if (a.is_integral() && b.is_integral()) {
    return decide(a.integer(), b.integer());
  }
  if (a.is_number() && b.is_number()) return decide(a.number(), b.number());
  // Bytes of UTF-8 compare as the code points they encode.
  if (a.is_string() && b.is_string()) {
    Meter::work(std::min(a.text().size(), b.text().size()) / 64);
    return decide(a.text(), b.text());
  }
  const auto listed = [](const Value& v) {
    return v.is_kind(SequenceKind::kList) || v.is_kind(SequenceKind::kTuple);
  };
  if (listed(a) && listed(b) && a.sequence().kind == b.sequence().kind) {
    const auto &x = a.sequence().items, &y = b.sequence().items;
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i])) return ordered(op, x[i], y[i]);
    }
    return decide(x.size(), y.size());
  }
  fail_type(
      quote(op) + " not supported between instances of " + quote(type_name(a)) +
      " and " + quote(type_name(b))
  );
}

bool contains(const Value& container, const Value& item) {
  if (container.is_string()) {
    if (!item.is_string()) {
      fail_type(
          "'in <string>' requires string as left operand, not " +
          std::string(type_name(item))
      );
    }
    Meter::search(container.text().size(), item.text().size());
    return container.text().find(item.text()) != std::string::npos;
  }
  if (container.is_dict()) {
    check_hashable(item);
    Meter::work(container.dict().entries.size() / 8 + 1);
    return container.dict().find(item) != nullptr;
  }
  if (!is_iterable(container)) {
    fail_type(
        "argument of type " + quote(type_name(container)) + " is not iterable"
    );
  }
  const std::vector<Value> items = items_of(container);
  return std::any_of(items.begin(), items.end(), [&](const Value& other) {
    return other.same(item) || equal(other, item);
  });
}

std::int64_t length(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) {
    Meter::work(value.text().size() / 64 + 1);
    return static_cast<std::int64_t>(code_point_count(value.text()));
  }
  if (value.is_dict()) {
    return static_cast<std::int64_t>(value.dict().entries.size());
  }
  if (value.is_sequence() && !value.is_kind(SequenceKind::kGenerator)) {
    return static_cast<std::int64_t>(value.sequence().items.size());
  }
  fail_type("object of type " + quote(type_name(value)) + " has no len()");
}

bool is_iterable(const Value& value) {
  return value.is_string() || value.is_sequence() || value.is_dict() ||
         value.is_undefined();
}

std::vector<Value> items_of(const Value& value) {
  std::vector<Value> items;
  const auto reserve = [&](std::size_t count) {
    Meter::work(count);
    Meter::allocate(count * sizeof(Value));
    items.reserve(count);
  };
  if (value.is_undefined()) return items;
  if (value.is_string()) {
    Meter::allocate(value.text().size() * 64);
    const auto parts = code_points(value.text());
    reserve(parts.size());
    for (const std::string_view part : parts) items.emplace_back(part);
  } else if (value.is_dict()) {
    reserve(value.dict().entries.size());
    for (const auto& entry : value.dict().entries) {
      items.push_back(entry.first);
    }
  } else if (value.is_sequence()) {
    Sequence& sequence = value.sequence();
    if (!sequence.failure.empty()) fail_type(sequence.failure);
    if (sequence.spent) return items;
    reserve(sequence.items.size());
    items = sequence.items;
    sequence.spent = sequence.kind == SequenceKind::kGenerator;
  } else {
    fail_type(quote(type_name(value)) + " object is not iterable");
  }
  return items;
}

void check_hashable(const Value& value) {
  if (value.is_dict() || value.is_kind(SequenceKind::kList)) {
    fail_type("unhashable type: " + quote(type_name(value)));
  }
  if (!value.is_kind(SequenceKind::kTuple)) return;
  for (const Value& item : value.sequence().items) {
    Meter::work();
    check_hashable(item);
  }
}

}  // namespace hearth::text::jinja
