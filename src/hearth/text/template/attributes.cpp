#include "hearth/text/template/attributes.h"

#include <algorithm>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/meter.h"
#include "hearth/text/template/python.h"
#include "hearth/text/template/text.h"

namespace hearth::text::jinja {
namespace {

Value missing(const Value& holder, const Value& key) {
  auto made = std::make_shared<Undefined>();
  made->holder = holder_name(holder);
  made->name_is_text = key.is_string();
  made->name = key.is_string() ? key.text() : repr(key);
  return Value(std::shared_ptr<const Undefined>(std::move(made)));
}

Value refused(const Value& holder, std::string_view name) {
  auto made = std::make_shared<Undefined>();
  made->hint = "access to attribute " + quote(name) + " of " +
               quote(type_name(holder)) + " object is unsafe.";
  made->unsafe = true;
  return Value(std::shared_ptr<const Undefined>(std::move(made)));
}

bool changes_its_value(const Value& value, std::string_view name) {
  static constexpr std::string_view kList[] = {"append",  "clear",  "pop",
                                               "reverse", "insert", "sort",
                                               "extend",  "remove"};
  static constexpr std::string_view kDict[] = {
      "clear", "pop", "popitem", "setdefault", "update"
  };
  if (value.is_kind(SequenceKind::kList)) {
    return std::ranges::find(kList, name) != std::end(kList);
  }
  return value.is_dict() && std::ranges::find(kDict, name) != std::end(kDict);
}

// Python's getattr, or nothing.
std::optional<Value> attribute(const Value& value, std::string_view name) {
  // Every Python object has these; none is safe.
  static constexpr std::string_view kCommon[] = {
      "__class__", "__doc__",  "__init__", "__dict__", "__eq__",
      "__hash__",  "__repr__", "__str__",  "__len__",  "__getitem__"
  };
  if (name.starts_with("__") &&
      std::ranges::find(kCommon, name) != std::end(kCommon)) {
    return refused(value, name);
  }
  if (changes_its_value(value, name)) return refused(value, name);
  if (value.is_object()) {
    const Value* found = value.object().attribute(name);
    if (found != nullptr) return *found;
    return std::nullopt;
  }
  return bind_method(value, name);
}

// Python's value[key], or nothing where it raises LookupError or TypeError.
std::optional<Value> element(const Value& value, const Value& key) {
  if (value.is_dict()) {
    if (key.is_dict() || key.is_kind(SequenceKind::kList)) return std::nullopt;
    Meter::work(value.dict().entries.size() / 8);
    const Value* found = value.dict().find(key);
    if (found != nullptr) return *found;
    return std::nullopt;
  }
  if (!key.is_integral()) return std::nullopt;
  std::int64_t index = key.integer();
  if (value.is_string()) {
    const std::int64_t count = length(value);
    if (index < 0) index += count;
    if (index < 0 || index >= count) return std::nullopt;
    const std::string& text = value.text();
    const std::size_t at = byte_offset(text, static_cast<std::size_t>(index));
    std::size_t end = at;
    next_code_point(text, end);
    return Value(text.substr(at, end - at));
  }
  if (value.is_kind(SequenceKind::kList) ||
      value.is_kind(SequenceKind::kTuple) ||
      value.is_kind(SequenceKind::kRange)) {
    const auto& items = value.sequence().items;
    const auto count = static_cast<std::int64_t>(items.size());
    if (index < 0) index += count;
    if (index < 0 || index >= count) return std::nullopt;
    return items[static_cast<std::size_t>(index)];
  }
  return std::nullopt;
}

std::int64_t slice_bound(
    const Value& bound,
    std::int64_t otherwise,
    std::int64_t count,
    bool down
) {
  if (bound.is_none()) return otherwise;
  if (!bound.is_integral()) {
    fail_type(
        "slice indices must be integers or None or have an __index__ method"
    );
  }
  std::int64_t at = bound.integer();
  if (at < 0) at = at < -count ? (down ? -1 : 0) : at + count;
  return std::min(at, down ? count - 1 : count);
}

}  // namespace

Value get_attribute(const Value& value, std::string_view name) {
  require_defined(value);
  // A dict's own keys are by far the most common, and few are method names.
  if (auto found = attribute(value, name)) return *found;
  const Value key{name};
  if (auto found = element(value, key)) return *found;
  return missing(value, key);
}

Value get_item(const Value& value, const Value& key) {
  require_defined(value);
  if (auto found = element(value, key)) return *found;
  if (key.is_string()) {
    if (auto found = attribute(value, key.text())) return *found;
  }
  return missing(value, key);
}

Value get_slice(
    const Value& value,
    const Value& start,
    const Value& stop,
    const Value& step
) {
  require_defined(value);
  const bool sliced = value.is_string() || value.is_kind(SequenceKind::kList) ||
                      value.is_kind(SequenceKind::kTuple) ||
                      value.is_kind(SequenceKind::kRange);
  if (value.is_dict()) fail_type("unhashable type: 'slice'");
  if (!sliced) {
    fail_type(quote(type_name(value)) + " object is not subscriptable");
  }
  if (!step.is_none() && !step.is_integral()) {
    fail_type(
        "slice indices must be integers or None or have an __index__ method"
    );
  }
  const std::int64_t count = length(value);
  // A longer step than the whole picks the same elements.
  const std::int64_t by =
      step.is_none() ? 1 : std::clamp(step.integer(), -count - 1, count + 1);
  if (by == 0) fail_value("slice step cannot be zero");
  const bool down = by < 0;
  const std::int64_t from =
      slice_bound(start, down ? count - 1 : 0, count, down);
  const std::int64_t to = slice_bound(stop, down ? -1 : count, count, down);
  if (value.is_string() && by == 1) {
    const std::string& text = value.text();
    const std::size_t a = byte_offset(text, static_cast<std::size_t>(from));
    const std::size_t b =
        byte_offset(text, static_cast<std::size_t>(std::max(from, to)));
    Meter::allocate(b - a);
    Meter::work(b / 64);
    return text.substr(a, b - a);
  }
  const std::vector<Value> items = items_of(value);
  std::vector<Value> picked;
  for (std::int64_t i = from; down ? i > to : i < to; i += by) {
    picked.push_back(items[static_cast<std::size_t>(i)]);
  }
  if (!value.is_string()) {
    return Value::sequence(value.sequence().kind, std::move(picked));
  }
  std::string text;
  for (const Value& item : picked) text += item.text();
  return text;
}

Parameters::Parameters(
    std::string_view function,
    std::string_view names,
    Arguments& arguments
)
    : function_(function) {
  std::vector<std::string_view> known;
  std::size_t positional = 0;
  bool counting = true;
  for (std::string_view name : split_spaces(names, -1, false)) {
    if (name.front() == '*') {
      name.remove_prefix(1);
      counting = false;
    }
    known.push_back(name);
    positional += counting;
  }
  values_.resize(known.size());
  if (arguments.positional.size() > positional) {
    fail_type(
        function_ + "() takes at most " + std::to_string(positional) +
        " arguments (" + std::to_string(arguments.positional.size()) + " given)"
    );
  }
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values_[i] = arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    Meter::work();
    const auto at = std::ranges::find(known, name);
    if (at == known.end()) {
      fail_type(
          function_ + "() got an unexpected keyword argument " + quote(name)
      );
    }
    auto& slot = values_[static_cast<std::size_t>(at - known.begin())];
    if (slot) {
      fail_type(
          function_ + "() got multiple values for argument " + quote(name)
      );
    }
    slot = value;
  }
}

const Value& Parameters::at(std::size_t index) const {
  if (!values_[index]) {
    fail_type(
        function_ + "() missing required argument " + std::to_string(index + 1)
    );
  }
  return *values_[index];
}

Value Parameters::get(std::size_t index, Value otherwise) const {
  return values_[index].value_or(std::move(otherwise));
}

std::int64_t Parameters::integer(
    std::size_t index,
    std::int64_t otherwise
) const {
  if (!values_[index]) return otherwise;
  const Value& value = *values_[index];
  require_defined(value);
  if (!value.is_integral()) {
    fail_type(
        quote(type_name(value)) + " object cannot be interpreted as an integer"
    );
  }
  return value.integer();
}

const std::string& Parameters::text(std::size_t index) const {
  const Value& value = at(index);
  if (!value.is_string()) {
    fail_type(
        function_ + "() argument " + std::to_string(index + 1) +
        " must be str, not " + std::string(type_name(value))
    );
  }
  return value.text();
}

}  // namespace hearth::text::jinja
