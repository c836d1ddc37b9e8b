#include "hearth/nn/parameter_set.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::nn {
namespace {

bool matches_glob(std::string_view pattern, std::string_view name) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  if (name.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= name.size(); ++at) {
    if (matches_glob(rest, name.substr(at))) return true;
  }
  return false;
}

}  // namespace

Weight& ParameterSet::add(WeightSpec spec) {
  if (find(spec.name) != nullptr) {
    throw Error("[nn.ParameterSet] two parameters are named " + spec.name);
  }
  list_.push_back(std::make_unique<Weight>(std::move(spec)));
  return *list_.back();
}

Weight* ParameterSet::find(std::string_view name) const {
  const auto at = std::ranges::find_if(list_, [&](const auto& p) {
    return p->name == name;
  });
  return at == list_.end() ? nullptr : at->get();
}

Weight& ParameterSet::at(std::string_view name) const {
  if (Weight* p = find(name)) return *p;
  throw Error(
      fmt::format("[nn.ParameterSet] there must be a weight {}, got none", name)
  );
}

Weight* ParameterSet::find(io::NamedRole part) const {
  const auto at = std::ranges::find_if(list_, [&](const auto& p) {
    return p->part == part;
  });
  return at == list_.end() ? nullptr : at->get();
}

Affine ParameterSet::affine(io::Role role, int layer) const {
  return {find({role, layer, false}), find({role, layer, true})};
}

std::vector<Weight*> ParameterSet::all() const {
  std::vector<Weight*> out;
  for (const auto& p : list_) out.push_back(p.get());
  return out;
}

std::vector<Weight*> ParameterSet::trainable() const {
  std::vector<Weight*> out;
  for (const auto& p : list_) {
    if (p->trainable) out.push_back(p.get());
  }
  return out;
}

std::vector<Weight*> ParameterSet::matching(std::string_view pattern) const {
  std::vector<Weight*> out;
  for (const auto& p : list_) {
    if (matches(pattern, p->name)) out.push_back(p.get());
  }
  return out;
}

std::size_t ParameterSet::count(bool trainable_only) const {
  std::size_t n = 0;
  for (const auto& p : list_) {
    if (p->trainable || !trainable_only) n += p->elements();
  }
  return n;
}

std::size_t ParameterSet::bytes() const {
  std::size_t n = 0;
  for (const auto& p : list_) n += p->bytes();
  return n;
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.find('*') != std::string_view::npos) {
    return matches_glob(pattern, name);
  }
  const std::string dotted = fmt::format(".{}.", name);
  return dotted.find(fmt::format(".{}.", pattern)) != std::string::npos;
}

Substitution::Substitution(
    const std::vector<Weight*>& parameters,
    const std::vector<mx::array>& arrays
)
    : parameters_(parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    saved_.push_back(parameters[i]->value());
    parameters[i]->value_ = arrays[i];
  }
}

Substitution::~Substitution() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i]->value_ = saved_[i];
  }
}

}  // namespace hearth::nn
