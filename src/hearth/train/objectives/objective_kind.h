#pragma once
// What is known of an objective before it is made: its name and keys in a
// recipe, what it needs of data and memory, what a recipe for it must be, how
// to make one. Everything that asks "which objective?" asks this table, so that
// a new one is a kind of its own and a line that adds it.
#include <any>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/config.h"
#include "hearth/base/json.h"
#include "hearth/data/loader/loader.h"

namespace hearth::train {

class Objective;
struct Recipe;
struct Session;

// Means by their names, such as "accuracy".
using NamedValues = std::map<std::string, double>;

// A config struct of any type, copied as a value.
class ObjectiveConfig {
 public:
  template <ConfigSection T>
  explicit ObjectiveConfig(T config)
      : config_(std::move(config)), fields_([](std::any& a, FieldVisitor& v) {
          std::any_cast<T&>(a).fields(v);
        }) {}

  void fields(FieldVisitor& v) { fields_(config_, v); }
  // Null when it is of another type.
  template <class T>
  const T* get_if() const {
    return std::any_cast<T>(&config_);
  }
  template <class T>
  T* get_if() {
    return std::any_cast<T>(&config_);
  }

 private:
  std::any config_;
  void (*fields_)(std::any&, FieldVisitor&);
};

struct ObjectiveNeeds {
  // Records with a chosen and a rejected answer; they make two rows.
  bool pairs = false;
  // Rows that must stay together.
  std::uint32_t row_group = 1;
  // How rows are made, whatever data.arrange says.
  std::optional<data::Arrange> arrange;
  // The model that the run starts from, read all the time: beside a whole model
  // that is trained it is a second one in memory.
  bool start_model = false;
};

struct ObjectiveKind {
  std::string name;  // the value of train.objective
  ObjectiveNeeds needs = {};
  // Its own keys with their defaults, under `train.`; absent: none. A section
  // of its own is a config with that one field.
  std::function<ObjectiveConfig()> config = nullptr;
  // Throws UsageError for a recipe that it cannot be trained by, beyond what
  // `needs` says.
  std::function<void(const Recipe&)> check = nullptr;
  // Of a session's model and recipe. The planner asks for one too, to go
  // through its graph: Session::planned says what is not there then, and
  // session_start.h has what a run starts from either way. Two recipes that
  // have the same model, adapters and keys of objectives must make the same
  // graph.
  std::function<std::unique_ptr<Objective>(const Session&)> make;
  // Keys of `train.` with their values that make validation losses another
  // measure; absent: none.
  std::function<Json(const Recipe&)> measure = nullptr;
  // What a validation came to beside its loss, in words for people; absent:
  // nothing.
  std::function<std::string(double loss, const NamedValues& means)> describe =
      nullptr;
};

// In the order they were added, train's own first. A reference stays good.
const std::deque<ObjectiveKind>& objective_kinds();
// Throws UsageError when there is none of that name.
const ObjectiveKind& objective_kind(std::string_view name);
// Before the first recipe is read: a recipe has the keys of the kinds that were
// there when it was made. Throws UsageError when the name is taken.
void add_objective(ObjectiveKind kind);

// The configs of all kinds, as a part of a recipe.
class ObjectiveConfigs {
 public:
  ObjectiveConfigs();

  void fields(FieldVisitor& v);
  // Every key with its value, as text.
  std::vector<std::pair<std::string, std::string>> values() const;
  template <class T>
  const T& get() const {
    for (const auto& [kind, config] : all_) {
      if (const T* own = config.template get_if<T>()) return *own;
    }
    missing();
  }
  template <class T>
  T& get() {
    return const_cast<T&>(std::as_const(*this).get<T>());
  }

  // Keys, under `train.`, that say something else than their default and are of
  // another kind than this one.
  std::vector<std::string> unused_by(std::string_view objective) const;

 private:
  std::vector<std::pair<std::string, ObjectiveConfig>> all_;  // by kind

  [[noreturn]] static void missing();
};

}  // namespace hearth::train
