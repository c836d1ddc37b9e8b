#include "hearth/text/template/value.h"

#include <algorithm>

#include "hearth/text/template/failure.h"
#include "hearth/text/template/python.h"

namespace hearth::text::jinja {
namespace {

int checked(int depth) {
  if (depth > kMaxNesting) {
    throw Failure{
        TemplateFault::kLimit,
        "values must nest at most " + std::to_string(kMaxNesting) + " deep"
    };
  }
  return depth;
}

}  // namespace

std::string Undefined::message() const {
  if (!hint.empty()) return hint;
  if (holder.empty()) return quote(name) + " is undefined";
  if (!name_is_text) return holder + " has no element " + name;
  return quote(holder) + " has no attribute " + quote(name);
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [name, value] : entries) {
    if (name.is_string() && name.text() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key) const {
  if (key.is_string()) return find(std::string_view(key.text()));
  for (const auto& [name, value] : entries) {
    if (equal(name, key)) return &value;
  }
  return nullptr;
}

void Dict::set(Value key, Value value) {
  if (const Value* old = find(key)) {
    *const_cast<Value*>(old) = std::move(value);
  } else {
    entries.emplace_back(std::move(key), std::move(value));
  }
}

std::string Object::repr() const {
  return "<" + std::string(type_name()) + ">";
}

const Value* Object::attribute(std::string_view) {
  return nullptr;
}

Value Object::call(Runtime&, Arguments&) {
  fail_type(quote(type_name()) + " object is not callable");
}

Value Value::sequence(SequenceKind kind, std::vector<Value> items) {
  auto made = std::make_shared<Sequence>();
  int depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  made->depth = checked(depth + 1);
  made->kind = kind;
  made->items = std::move(items);
  Value value;
  value.data_ = std::move(made);
  return value;
}

Value Value::list(std::vector<Value> items) {
  return sequence(SequenceKind::kList, std::move(items));
}

Value Value::tuple(std::vector<Value> items) {
  return sequence(SequenceKind::kTuple, std::move(items));
}

Value Value::dict(Dict dict) {
  int depth = 0;
  for (const auto& [key, value] : dict.entries) {
    depth = std::max({depth, key.depth(), value.depth()});
  }
  dict.depth = checked(depth + 1);
  Value value;
  value.data_ = std::make_shared<const Dict>(std::move(dict));
  return value;
}

Value Value::undefined(std::string name) {
  auto made = std::make_shared<Undefined>();
  made->name = std::move(name);
  return Value(std::shared_ptr<const Undefined>(std::move(made)));
}

Value Value::undefined_hint(std::string hint) {
  auto made = std::make_shared<Undefined>();
  made->hint = std::move(hint);
  return Value(std::shared_ptr<const Undefined>(std::move(made)));
}

Value Value::from_json(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return json.get<bool>();
    case Json::value_t::number_integer:
      return json.get<std::int64_t>();
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > std::uint64_t{INT64_MAX}) {
        fail_value("integers must fit 64 bits, got " + std::to_string(number));
      }
      return static_cast<std::int64_t>(number);
    }
    case Json::value_t::number_float:
      return json.get<double>();
    case Json::value_t::string:
      return json.get_ref<const std::string&>();
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(from_json(item));
      return list(std::move(items));
    }
    case Json::value_t::object: {
      // Keys of a parsed object are distinct, so none is looked up.
      Dict made;
      made.entries.reserve(json.size());
      for (const auto& [key, item] : json.items()) {
        made.entries.emplace_back(key, from_json(item));
      }
      return dict(std::move(made));
    }
    default:
      return {};
  }
}

int Value::depth() const {
  if (is_sequence()) return sequence().depth;
  if (is_dict()) return dict().depth;
  return is_object() ? object().depth() : 0;
}

bool Value::same(const Value& other) const {
  if (data_.index() != other.data_.index()) return false;
  if (is_sequence()) return &sequence() == &other.sequence();
  if (is_dict()) return &dict() == &other.dict();
  if (is_object()) return &object() == &other.object();
  if (is_undefined()) return &undefined() == &other.undefined();
  return equal(*this, other);
}

}  // namespace hearth::text::jinja
