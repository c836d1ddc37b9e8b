#pragma once
// A config is a plain struct with defaults and one list of its fields:
//
//   struct OptimConfig {
//     std::string name = "adamw";
//     double lr = 3e-4;
//     void fields(FieldVisitor& v) {
//       v("name", name, "optimiser", one_of({"adamw", "lion"}));
//       v("lr", lr, "peak learning rate", positive());
//     }
//   };
//
// From that list come parsing, dotted overrides, range checks, --help, and a
// dump that says where each value came from. A section is a struct with
// fields(), or std::optional of one: absent means off, and null switches it
// off. An unknown key is an error that names the nearest known key.
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/base/yaml.h"

namespace hearth {

class FieldVisitor;

template <class T>
concept ConfigSection = requires(T t, FieldVisitor& v) { t.fields(v); };

// What a value must satisfy: an empty string, or what it must be ("at least
// 1"). Numbers are checked as double, words as text.
struct Constraint {
  std::function<bool(double)> number;
  std::function<bool(std::string_view)> word;
  std::string must_be;
  std::vector<std::string> choices;
  bool required = false;
  bool may_change = false;
};
Constraint at_least(double low);
Constraint between(double low, double high);
Constraint positive();
Constraint one_of(std::vector<std::string> choices);
// The recipe must give it (require_all() checks); any constraint beside it.
Constraint required(Constraint also = {});
// What has begun with one value may go on with another, such as a run that
// --resume continues; any constraint beside it. No field may unless it says so.
Constraint may_change(Constraint also = {});

// One value of a config behind functions, so that code which lists or sets
// fields need not know its type.
struct Field {
  std::string path;  // optim.lr
  std::string type;  // number, integer, word, true/false, list of ..., YAML
  std::string help;
  Constraint constraint;
  std::string origin = "default";
  std::function<void(const YamlNode&)> set;
  std::function<std::string()> show;  // as YAML flow
};

// Where a section that may be absent starts.
struct Section {
  std::string path;
  std::string help;
  bool present = true;
  std::function<void()> create = nullptr;  // null when it is always there
  std::function<void()> remove = nullptr;
};

namespace detail {
void set_bool(const YamlNode&, const Field&, bool&);
void set_number(const YamlNode&, const Field&, double&);
void set_integer(const YamlNode&, const Field&, std::int64_t&);
void set_word(const YamlNode&, const Field&, std::string&);
// The shortest text that reads back as the same value.
std::string show_number(float value);
std::string show_number(double value);
std::string show_word(const std::string& value);
std::string show_node(const YamlNode& value);
[[noreturn]] void wrong_type(
    const YamlNode&,
    const Field&,
    std::string_view wanted
);
[[noreturn]] void out_of_range(
    const YamlNode&,
    const Field&,
    double low,
    double high
);

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
void set_value(const YamlNode& node, const Field& field, T& out) {
  if constexpr (std::same_as<T, YamlNode>) {
    out = node;
  } else if constexpr (std::same_as<T, bool>) {
    set_bool(node, field, out);
  } else if constexpr (std::integral<T>) {
    std::int64_t wide = 0;
    set_integer(node, field, wide);
    if (!std::in_range<T>(wide)) {
      out_of_range(
          node, field, static_cast<double>(std::numeric_limits<T>::min()),
          static_cast<double>(std::numeric_limits<T>::max())
      );
    }
    out = static_cast<T>(wide);
  } else if constexpr (std::floating_point<T>) {
    double wide = 0;
    set_number(node, field, wide);
    out = static_cast<T>(wide);
  } else if constexpr (IsOptional<T>::value) {
    if (node.kind == YamlNode::Kind::kNull) {
      out.reset();
      return;
    }
    typename T::value_type value{};
    set_value(node, field, value);
    out = std::move(value);
  } else if constexpr (IsVector<T>::value) {
    if (node.kind != YamlNode::Kind::kList) wrong_type(node, field, "a list");
    T values;
    for (const YamlNode& item : node.items) {
      set_value(item, field, values.emplace_back());
    }
    out = std::move(values);
  } else {
    set_word(node, field, out);
  }
}

template <class T>
std::string show_value(const T& value) {
  if constexpr (std::same_as<T, YamlNode>) {
    return show_node(value);
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::integral<T>) {
    return std::to_string(value);
  } else if constexpr (std::floating_point<T>) {
    return show_number(value);
  } else if constexpr (IsOptional<T>::value) {
    return value ? show_value(*value) : "null";
  } else if constexpr (IsVector<T>::value) {
    std::string text = "[";
    for (const auto& item : value) {
      if (text.size() > 1) text += ", ";
      text += show_value(item);
    }
    return text + "]";
  } else {
    return show_word(value);
  }
}

template <class T>
std::string type_name() {
  if constexpr (std::same_as<T, YamlNode>) {
    return "YAML";
  } else if constexpr (std::same_as<T, bool>) {
    return "true/false";
  } else if constexpr (std::integral<T>) {
    return "integer";
  } else if constexpr (std::floating_point<T>) {
    return "number";
  } else if constexpr (IsOptional<T>::value) {
    return type_name<typename T::value_type>();
  } else if constexpr (IsVector<T>::value) {
    return "list of " + type_name<typename T::value_type>();
  } else {
    return "word";
  }
}
}  // namespace detail

// Collects the fields of a config. The config must outlive it.
class FieldVisitor {
 public:
  template <class T>
  void operator()(
      std::string_view name,
      T& value,
      std::string_view help,
      // Moved where T is a plain value.
      // NOLINTNEXTLINE(performance-unnecessary-value-param)
      Constraint c = {}
  ) {
    const std::string path = prefix_ + std::string(name);
    if constexpr (ConfigSection<T>) {
      enter({path, std::string(help)});
      nested(path, value);
    } else if constexpr (detail::IsOptional<T>::value) {
      if constexpr (ConfigSection<typename T::value_type>) {
        optional_section(path, value, help);
      } else {
        leaf(path, value, help, std::move(c));
      }
    } else {
      leaf(path, value, help, std::move(c));
    }
  }

  const std::vector<std::unique_ptr<Field>>& fields() const { return fields_; }
  const std::vector<Section>& sections() const { return sections_; }

 private:
  template <class T>
  void nested(const std::string& path, T& section) {
    const std::string outer = std::exchange(prefix_, path + ".");
    section.fields(*this);
    prefix_ = outer;
  }
  template <class T>
  void optional_section(
      const std::string& path,
      std::optional<T>& value,
      std::string_view help
  ) {
    const auto create = [&value] {
      if (!value) value.emplace();
    };
    enter({path, std::string(help), value.has_value(), create, [&value] {
             value.reset();
           }});
    if (value) {
      nested(path, *value);
      return;
    }
    // Absent: its fields are listed (for help and spelling) from a default
    // that nothing else sees.
    auto defaults = std::make_shared<T>();
    keep_.push_back(defaults);
    nested(path, *defaults);
  }
  template <class T>
  void leaf(
      const std::string& path,
      T& value,
      std::string_view help,
      Constraint c
  ) {
    auto field = std::make_unique<Field>();
    Field* f = field.get();
    f->path = path;
    f->type = detail::type_name<T>();
    f->help = help;
    f->constraint = std::move(c);
    f->set = [f, &value](const YamlNode& n) {
      detail::set_value(n, *f, value);
    };
    f->show = [&value] { return detail::show_value(value); };
    fields_.push_back(std::move(field));
  }
  void enter(Section section) { sections_.push_back(std::move(section)); }

  std::string prefix_;
  std::vector<std::unique_ptr<Field>> fields_;
  std::vector<Section> sections_;
  std::vector<std::shared_ptr<void>> keep_;
};

// A config with the origin of each of its values.
class ConfigReader {
 public:
  template <ConfigSection T>
  explicit ConfigReader(T& config)
      : list_([&config] {
          auto v = std::make_unique<FieldVisitor>();
          config.fields(*v);
          return v;
        }) {
    relist();
  }

  // Sets every key of a recipe. Values from it carry "FILE:LINE".
  void apply(const YamlNode& recipe);
  // Sets one "path=value" from the command line; value is YAML, and null for
  // an optional section switches it off.
  void apply_override(
      std::string_view assignment,
      std::string_view origin = "command line"
  );
  // Sets a value on behalf of something else, such as an environment variable.
  void apply_value(
      std::string_view path,
      std::string_view value,
      std::string_view origin
  );
  static bool is_override(std::string_view word);
  // Throws for the first required field that nothing has set; `at` is where
  // the config stands.
  void require_all(const YamlNode& at) const;

  // Where a value came from; "default" when nothing has set it.
  std::string origin(std::string_view path) const;

  // "path = value   # origin" for each leaf of each present section.
  std::string dump() const;
  // The config as a recipe that reads back to the same values.
  std::string to_yaml() const;
  // One line a field: path, type, default, constraint, help.
  std::string help() const;
  // Every field, those of sections that are absent included or not.
  std::vector<const Field*> fields(bool absent_too) const;

 private:
  void relist();
  void apply_at(const std::string& path, const YamlNode& node);
  void set_leaf(Field& field, const YamlNode& node, std::string origin);
  Field* find_field(std::string_view path) const;
  const Section* find_section(std::string_view path) const;
  bool present(std::string_view path) const;
  void create_sections_above(const std::string& path);
  void switch_off(const std::string& path);
  [[noreturn]] void unknown(const std::string& path, const YamlNode& at) const;

  std::function<std::unique_ptr<FieldVisitor>()> list_;
  std::unique_ptr<FieldVisitor> fields_;
  std::vector<std::pair<std::string, std::string>> origins_;
};

}  // namespace hearth
