#pragma once
// What a template computes with: Python's values as far as chat templates meet
// them. Containers are immutable and shared; each knows how deep it nests, so
// that nothing built by a loop can exhaust the stack when printed or freed.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hearth/base/json.h"

namespace hearth::text::jinja {

class Value;
class Runtime;

// Of lists in lists: deeper than any schema, shallow enough for every
// thread's stack.
inline constexpr int kMaxNesting = 100;

// Arguments of a call: positional first, then by name.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// The absence of a value, with the message an operation on it fails with.
struct Undefined {
  std::string name;
  std::string hint;          // the whole message when not empty
  std::string holder;        // type of the object that has no such attribute
  bool name_is_text = true;  // false: `name` is the repr of an element
  bool unsafe = false;       // access was refused, not missing
  std::string message() const;
};

enum class SequenceKind : std::uint8_t {
  kList,
  kTuple,
  kGenerator,  // can be walked once; has no length and no elements
  kRange,
  kKeys,
  kValues,
  kItems,
};

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
  bool spent = false;   // generators only
  std::string failure;  // what walking it fails with: generators are lazy
  int depth = 1;
};

struct Dict {
  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  const Value* find(const char* key) const {
    return find(std::string_view(key));
  }
  // Replaces the value of an equal key, keeping its place.
  void set(Value key, Value value);
};

// Functions, macros, namespaces, loops. Compared by identity.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string_view type_name() const = 0;
  // How jinja2 names it in "... has no attribute".
  virtual std::string holder_name() const {
    return std::string(type_name()) + " object";
  }
  virtual std::string repr() const;
  virtual bool callable() const { return false; }
  // How deep what it holds on to nests; see Value::depth.
  virtual int depth() const { return 0; }
  // Null when there is no such attribute.
  virtual const Value* attribute(std::string_view name);
  virtual Value call(Runtime& runtime, Arguments& arguments);
};

class Value {
 public:
  using String = std::shared_ptr<const std::string>;

  Value() : data_(std::monostate{}) {}  // None
  Value(bool value) : data_(value) {}   // NOLINT
  Value(std::int64_t value) : data_(value) {}
  Value(int value) : data_(std::int64_t{value}) {}
  Value(double value) : data_(value) {}
  Value(std::string text)
      : data_(std::make_shared<const std::string>(std::move(text))) {}
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}
  Value(std::shared_ptr<const Undefined> undefined)
      : data_(std::move(undefined)) {}
  Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  // Checks the nesting depth; Failure when the limit is passed.
  static Value sequence(SequenceKind kind, std::vector<Value> items);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(Dict dict);
  static Value undefined(std::string name);
  static Value undefined_hint(std::string hint);
  static Value from_json(const Json& json);

  bool is_undefined() const { return has<std::shared_ptr<const Undefined>>(); }
  bool is_none() const { return has<std::monostate>(); }
  bool is_bool() const { return has<bool>(); }
  bool is_int() const { return has<std::int64_t>(); }
  bool is_float() const { return has<double>(); }
  bool is_integral() const { return is_int() || is_bool(); }
  bool is_number() const { return is_integral() || is_float(); }
  bool is_string() const { return has<String>(); }
  bool is_sequence() const { return has<std::shared_ptr<Sequence>>(); }
  bool is_kind(SequenceKind kind) const {
    return is_sequence() && sequence().kind == kind;
  }
  bool is_dict() const { return has<std::shared_ptr<const Dict>>(); }
  bool is_object() const { return has<std::shared_ptr<Object>>(); }

  const Undefined& undefined() const {
    return *std::get<std::shared_ptr<const Undefined>>(data_);
  }
  bool boolean() const { return std::get<bool>(data_); }
  // Of a bool or an int.
  std::int64_t integer() const {
    return is_bool() ? boolean() : std::get<std::int64_t>(data_);
  }
  // Of any number.
  double number() const {
    return is_float() ? std::get<double>(data_)
                      : static_cast<double>(integer());
  }
  const std::string& text() const { return *std::get<String>(data_); }
  Sequence& sequence() const {
    return *std::get<std::shared_ptr<Sequence>>(data_);
  }
  const Dict& dict() const {
    return *std::get<std::shared_ptr<const Dict>>(data_);
  }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  int depth() const;
  // Same object in memory: Python's `is`, as far as templates can tell.
  bool same(const Value& other) const;

 private:
  template <class T>
  bool has() const {
    return std::holds_alternative<T>(data_);
  }
  std::variant<
      std::monostate,
      bool,
      std::int64_t,
      double,
      String,
      std::shared_ptr<Sequence>,
      std::shared_ptr<const Dict>,
      std::shared_ptr<Object>,
      std::shared_ptr<const Undefined>>
      data_;
};

}  // namespace hearth::text::jinja
