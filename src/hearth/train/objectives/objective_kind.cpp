#include "hearth/train/objectives/objective_kind.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/objectives/preference.h"

namespace hearth::train {
namespace {

// A deque, so that what is added moves nothing.
std::deque<ObjectiveKind>& table() {
  static std::deque<ObjectiveKind> kinds = {
      language_model_kind(), preference_kind()
  };
  return kinds;
}

const ObjectiveKind* find(std::string_view name) {
  const auto& kinds = table();
  const auto at = std::ranges::find(kinds, name, &ObjectiveKind::name);
  return at == kinds.end() ? nullptr : &*at;
}

// Keys and values of one kind.
std::vector<std::pair<std::string, std::string>> values_of(
    ObjectiveConfig config
) {
  FieldVisitor v;
  config.fields(v);
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& f : v.fields()) out.emplace_back(f->path, f->show());
  return out;
}

}  // namespace

const std::deque<ObjectiveKind>& objective_kinds() {
  return table();
}

const ObjectiveKind& objective_kind(std::string_view name) {
  if (const ObjectiveKind* kind = find(name)) return *kind;
  std::vector<std::string> names;
  for (const auto& kind : table()) names.push_back(kind.name);
  throw UsageError(
      fmt::format(
          "train.objective must be one of {}, got '{}'", fmt::join(names, ", "),
          name
      )
  );
}

void add_objective(ObjectiveKind kind) {
  if (find(kind.name) != nullptr) {
    throw UsageError(
        fmt::format(
            "[train.add_objective] a name must be added once, got '{}'",
            kind.name
        )
    );
  }
  table().push_back(std::move(kind));
}

ObjectiveConfigs::ObjectiveConfigs() {
  for (const auto& kind : table()) {
    if (kind.config) all_.emplace_back(kind.name, kind.config());
  }
}

void ObjectiveConfigs::fields(FieldVisitor& v) {
  for (auto& [kind, config] : all_) config.fields(v);
}

std::vector<std::pair<std::string, std::string>> ObjectiveConfigs::
    values() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [kind, config] : all_) {
    for (auto& one : values_of(config)) out.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> ObjectiveConfigs::unused_by(
    std::string_view objective
) const {
  std::vector<std::string> keys;
  for (const auto& [kind, config] : all_) {
    if (kind == objective) continue;
    const auto given = values_of(config);
    const auto plain = values_of(objective_kind(kind).config());
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i] != plain[i]) keys.push_back(given[i].first);
    }
  }
  return keys;
}

void ObjectiveConfigs::missing() {
  throw Error(
      "[train.ObjectiveConfigs] the kind of an objective must be added before "
      "a recipe with its keys is made"
  );
}

}  // namespace hearth::train
