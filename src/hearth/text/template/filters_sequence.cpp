// Filters over sequences and mappings.
#include <algorithm>

#include "hearth/text/template/attributes.h"
#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/runtime_impl.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

Value generator(std::vector<Value> items) {
  return Value::sequence(SequenceKind::kGenerator, std::move(items));
}

// Follows "a.b.0" from an item; an index may also be given as a number.
Value follow(const Value& item, const Value& path) {
  if (!path.is_string()) return get_item(item, path);
  Value value = item;
  for (const std::string_view part : split_at(path.text(), ".", -1, false)) {
    const bool index =
        !part.empty() && part.size() < 18 &&
        part.find_first_not_of("0123456789") == std::string_view::npos;
    value = index
                ? get_item(
                      value, Value(std::int64_t{std::stoll(std::string(part))})
                  )
                : get_item(value, Value(part));
  }
  return value;
}

// What sort and its kin compare: the attribute, without case by default.
Value key_of(const Value& item, const Value& attribute, bool case_sensitive) {
  Value key = attribute.is_none() ? item : follow(item, attribute);
  if (case_sensitive || !key.is_string()) return key;
  return to_lower(key.text());
}

Value default_filter(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("default", "default_value boolean", arguments);
  const bool replaced =
      value.is_undefined() || (truthy(p.get(1, false)) && !truthy(value));
  return replaced ? p.get(0, "") : value;
}

Value join(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("join", "d attribute", arguments);
  const std::string separator = str(p.get(0, ""));
  const Value attribute = p.get(1, Value());
  std::string out;
  bool first = true;
  for (const Value& item : items_of(value)) {
    if (!first) out += separator;
    first = false;
    const std::string text =
        str(attribute.is_none() ? item : follow(item, attribute));
    Meter::allocate(text.size() + separator.size());
    out += text;
  }
  return out;
}

Value length_filter(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("length", "", arguments);
  return length(value);
}

Value first(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("first", "", arguments);
  const std::vector<Value> items = items_of(value);
  if (!items.empty()) return items.front();
  return Value::undefined_hint("No first item, sequence was empty.");
}

Value last(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("last", "", arguments);
  if (value.is_kind(SequenceKind::kGenerator)) {
    fail_type("'generator' object is not reversible");
  }
  const std::vector<Value> items = items_of(value);
  if (!items.empty()) return items.back();
  return Value::undefined_hint("No last item, sequence was empty.");
}

Value list(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("list", "", arguments);
  return Value::list(items_of(value));
}

Value map(Runtime& runtime, const Value& value, Arguments& arguments) {
  std::vector<Value> out;
  if (!truthy(value)) return generator({});
  if (arguments.positional.empty()) {
    const Parameters p("map", "*attribute *default", arguments);
    if (!p.has(0)) fail_type("map requires a filter argument");
    for (const Value& item : items_of(value)) {
      out.push_back(follow(item, p.at(0)));
      if (out.back().is_undefined() && p.has(1)) out.back() = p.at(1);
    }
    return generator(std::move(out));
  }
  const Value name = arguments.positional.front();
  for (const Value& item : items_of(value)) {
    Meter::work();
    Arguments rest = arguments;
    rest.positional.erase(rest.positional.begin());
    out.push_back(apply_filter(runtime, str(name), item, rest));
  }
  return generator(std::move(out));
}

template <bool keep, bool by_attribute>
Value select(Runtime& runtime, const Value& value, Arguments& arguments) {
  std::vector<Value> out;
  if (!truthy(value)) return generator({});
  if (by_attribute && arguments.positional.empty()) {
    fail_type("Missing parameter for attribute name");
  }
  for (const Value& item : items_of(value)) {
    Meter::work();
    Arguments rest = arguments;
    auto& given = rest.positional;
    Value tested = item;
    if (by_attribute) {
      tested = follow(item, given.front());
      given.erase(given.begin());
    }
    bool holds = false;
    if (given.empty()) {
      holds = truthy(tested);
    } else {
      const std::string name = str(given.front());
      given.erase(given.begin());
      holds = apply_test(runtime, name, tested, rest);
    }
    if (holds == keep) out.push_back(item);
  }
  return generator(std::move(out));
}

// Stable, as Python's. Comparisons may fail, so no std algorithm that assumes
// an order is used on values themselves: keys are compared by ordered().
std::vector<Value> sorted(
    std::vector<Value> items,
    const Value& attribute,
    bool case_sensitive,
    bool reverse
) {
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& item : items) {
    Value key = key_of(item, attribute, case_sensitive);
    // NaN has no place in an order; std::stable_sort must not see one.
    if (key.is_float() && key.number() != key.number()) {
      fail_value("sort keys must not be nan");
    }
    keyed.emplace_back(std::move(key), std::move(item));
  }
  const auto less = [](const auto& a, const auto& b) {
    return ordered("<", a.first, b.first);
  };
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  std::stable_sort(keyed.begin(), keyed.end(), less);
  if (reverse) std::reverse(keyed.begin(), keyed.end());
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    items[i] = std::move(keyed[i].second);
  }
  return items;
}

Value sort(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("sort", "reverse case_sensitive attribute", arguments);
  return Value::list(sorted(
      items_of(value), p.get(2, Value()), truthy(p.get(1, false)),
      truthy(p.get(0, false))
  ));
}

std::vector<Value> pairs_of(const Value& value) {
  std::vector<Value> pairs;
  Meter::allocate(value.dict().entries.size() * 4 * sizeof(Value));
  for (const auto& [key, item] : value.dict().entries) {
    pairs.push_back(Value::tuple({key, item}));
  }
  return pairs;
}

Value dictsort(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("dictsort", "case_sensitive by reverse", arguments);
  require_defined(value);
  if (!value.is_dict()) {
    fail_type(quote(type_name(value)) + " object has no attribute 'items'");
  }
  const std::string by = p.has(1) ? p.text(1) : "key";
  if (by != "key" && by != "value") {
    fail_value("You can only sort by either \"key\" or \"value\"");
  }
  return Value::list(sorted(
      pairs_of(value), Value(by == "key" ? 0 : 1), truthy(p.get(0, false)),
      truthy(p.get(2, false))
  ));
}

Value unique(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("unique", "case_sensitive attribute", arguments);
  std::vector<Value> out, seen;
  for (const Value& item : items_of(value)) {
    Value key = key_of(item, p.get(1, Value()), truthy(p.get(0, false)));
    check_hashable(key);
    const bool known = std::any_of(
        seen.begin(), seen.end(), [&](const auto& k) { return equal(k, key); }
    );
    if (known) continue;
    seen.push_back(std::move(key));
    out.push_back(item);
  }
  return generator(std::move(out));
}

Value reverse(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("reverse", "", arguments);
  if (value.is_string()) return get_slice(value, {}, {}, Value(-1));
  std::vector<Value> items = items_of(value);
  std::reverse(items.begin(), items.end());
  return generator(std::move(items));
}

Value sum(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("sum", "attribute start", arguments);
  const Value attribute = p.get(0, Value());
  Value total = p.get(1, 0);
  if (total.is_string()) {
    fail_type("sum() can't sum strings [use ''.join(seq) instead]");
  }
  for (const Value& item : items_of(value)) {
    total = arithmetic(
        "+", total, attribute.is_none() ? item : follow(item, attribute)
    );
  }
  return total;
}

template <bool largest>
Value extreme(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("min", "case_sensitive attribute", arguments);
  const std::vector<Value> items = items_of(value);
  if (items.empty()) {
    return Value::undefined_hint("No aggregated item, sequence was empty.");
  }
  const bool exact = truthy(p.get(0, false));
  const Value attribute = p.get(1, Value());
  Value best = items.front(), best_key = key_of(best, attribute, exact);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value key = key_of(items[i], attribute, exact);
    if (!ordered(largest ? ">" : "<", key, best_key)) continue;
    best = items[i];
    best_key = std::move(key);
  }
  return best;
}

Value items(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters none("items", "", arguments);
  if (value.is_undefined()) return generator({});
  Value made =
      generator(value.is_dict() ? pairs_of(value) : std::vector<Value>());
  if (!value.is_dict()) {
    made.sequence().failure = "Can only get item pairs from a mapping.";
  }
  return made;
}

Value batch(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("batch", "linecount fill_with", arguments);
  const std::int64_t size = p.integer(0, 0);
  if (size < 1) fail_value("batch sizes must be positive");
  std::vector<Value> out, row;
  const auto flush = [&] {
    out.push_back(Value::list(std::move(row)));
    row.clear();
  };
  for (const Value& item : items_of(value)) {
    if (static_cast<std::int64_t>(row.size()) == size) flush();
    row.push_back(item);
  }
  const Value fill = p.get(1, Value());
  if (!row.empty()) {
    const auto short_of = size - static_cast<std::int64_t>(row.size());
    if (!fill.is_none()) {
      Meter::allocate(static_cast<std::size_t>(short_of) * sizeof(Value));
      row.insert(row.end(), static_cast<std::size_t>(short_of), fill);
    }
    flush();
  }
  return generator(std::move(out));
}

Value slice(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("slice", "slices fill_with", arguments);
  const std::int64_t slices = p.integer(0, 0);
  if (slices < 1 || slices > 100000) {
    fail_value("slices must be between 1 and 100000");
  }
  const std::vector<Value> all = items_of(value);
  const auto count = static_cast<std::int64_t>(all.size());
  const std::int64_t each = count / slices, extra = count % slices;
  const Value fill = p.get(1, Value());
  std::vector<Value> out;
  Meter::allocate(static_cast<std::size_t>(slices) * sizeof(Value) * 4);
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < slices; ++i) {
    const std::int64_t end = at + each + (i < extra);
    std::vector<Value> row(all.begin() + at, all.begin() + end);
    if (!fill.is_none() && i >= extra) row.push_back(fill);
    out.push_back(Value::list(std::move(row)));
    at = end;
  }
  return generator(std::move(out));
}

Value groupby(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("groupby", "attribute default case_sensitive", arguments);
  const bool exact = truthy(p.get(2, false));
  const Value& attribute = p.at(0);
  const auto key = [&](const Value& item) {
    Value found = key_of(item, attribute, exact);
    return found.is_undefined() && p.has(1) ? p.at(1) : found;
  };
  std::vector<Value> out, group;
  const auto flush = [&] {
    if (group.empty()) return;
    const Value name = follow(group.front(), attribute);
    out.push_back(
        Value::tuple(
            {name.is_undefined() && p.has(1) ? p.at(1) : name,
             Value::list(std::move(group))}
        )
    );
    group.clear();
  };
  std::vector<std::pair<Value, Value>> keyed;
  for (const Value& item : items_of(value)) keyed.emplace_back(key(item), item);
  std::stable_sort(
      keyed.begin(), keyed.end(), [](const auto& a, const auto& b) {
        return ordered("<", a.first, b.first);
      }
  );
  for (std::size_t i = 0; i < keyed.size(); ++i) {
    if (i > 0 && !equal(keyed[i].first, keyed[i - 1].first)) flush();
    group.push_back(keyed[i].second);
  }
  flush();
  return Value::list(std::move(out));
}

Value attribute(Runtime&, const Value& value, Arguments& arguments) {
  const Parameters p("attr", "name", arguments);
  require_defined(value);
  const std::string name = str(p.at(0));
  // Unlike value.name this never looks at elements.
  if (value.is_dict() && !bind_method(value, name)) {
    return get_item(Value::dict({}), Value(name));
  }
  return get_attribute(value, name);
}

struct Entry {
  std::string_view name;
  FilterFunction call;
};

constexpr Entry kFilters[] = {
    {"length", length_filter},
    {"count", length_filter},
    {"default", default_filter},
    {"d", default_filter},
    {"join", join},
    {"items", items},
    {"list", list},
    {"first", first},
    {"last", last},
    {"map", map},
    {"select", select<true, false>},
    {"reject", select<false, false>},
    {"selectattr", select<true, true>},
    {"rejectattr", select<false, true>},
    {"sort", sort},
    {"dictsort", dictsort},
    {"unique", unique},
    {"reverse", reverse},
    {"sum", sum},
    {"min", extreme<false>},
    {"max", extreme<true>},
    {"batch", batch},
    {"slice", slice},
    {"groupby", groupby},
    {"attr", attribute},
};

}  // namespace

FilterFunction find_sequence_filter(std::string_view name) {
  const auto found = std::ranges::find(kFilters, name, &Entry::name);
  return found == std::end(kFilters) ? nullptr : found->call;
}

}  // namespace hearth::text::jinja
