#include "hearth/nn/parameter.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

kernels::GemmScalar scalar(mx::Dtype t) {
  return t == mx::bfloat16 ? kernels::GemmScalar::bf16
                           : kernels::GemmScalar::f32;
}

}  // namespace

std::size_t Parameter::elements() const {
  std::size_t n = 1;
  for (const auto d : shape) n *= static_cast<std::size_t>(d);
  return n;
}

void Parameter::set(mx::array v) {
  value = std::move(v);
  filled = true;
}

void Parameter::set(std::shared_ptr<const ops::QuantizedWeight> w) {
  quantized = std::move(w);
  drop_value();
  filled = true;
}

void Parameter::drop_value() {
  value = mx::array({}, mx::float32);
}

Parameter& ParameterSet::add(Parameter p) {
  if (find(p.name) != nullptr) {
    throw Error("[nn.ParameterSet] two parameters are named " + p.name);
  }
  list_.push_back(std::make_unique<Parameter>(std::move(p)));
  return *list_.back();
}

Parameter* ParameterSet::find(std::string_view name) const {
  const auto at = std::ranges::find_if(list_, [&](const auto& p) {
    return p->name == name;
  });
  return at == list_.end() ? nullptr : at->get();
}

std::vector<Parameter*> ParameterSet::all() const {
  std::vector<Parameter*> out;
  for (const auto& p : list_) out.push_back(p.get());
  return out;
}

std::vector<Parameter*> ParameterSet::trainable() const {
  std::vector<Parameter*> out;
  for (const auto& p : list_) {
    if (p->trainable) out.push_back(p.get());
  }
  return out;
}

std::vector<Parameter*> ParameterSet::matching(std::string_view pattern) const {
  std::vector<Parameter*> out;
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
  for (const auto& p : list_) {
    if (p->filled) n += p->value.nbytes();
    if (p->packed) n += p->packed->bytes();
    if (p->quantized) n += p->quantized->nbytes();
  }
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
    const std::vector<Parameter*>& parameters,
    const std::vector<mx::array>& arrays
)
    : parameters_(parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    saved_.push_back(parameters[i]->value);
    parameters[i]->value = arrays[i];
  }
}

Substitution::~Substitution() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    parameters_[i]->value = saved_[i];
  }
}

void pack(Parameter& p, mx::Dtype compute, ops::PackedOrders orders) {
  const long n = p.shape.at(0), k = p.shape.at(1);
  if (!p.packed) {
    p.packed = std::make_shared<ops::PackedWeight>(
        n, k, scalar(compute), MemoryZone::named("packed weights"), orders
    );
  }
  constexpr auto kGrain = std::size_t{ops::PackedWeight::kRowGrain};
  const auto rows = static_cast<std::size_t>(n);
  ops::current_execution().pool.parallel_for(
      (rows + kGrain - 1) / kGrain, 1, [&](std::size_t begin, std::size_t end) {
        p.packed->refresh(
            p.value.data<void>(), scalar(p.value.dtype()),
            {static_cast<long>(begin * kGrain),
             static_cast<long>(std::min(end * kGrain, rows))}
        );
      }
  );
}

}  // namespace hearth::nn
