#include "hearth/models/load_report.h"

#include <algorithm>

#include "hearth/io/weight_names.h"

namespace hearth::models {

void LoadTimes::add(const LoadTimes& other) {
  read += other.read;
  convert += other.convert;
  pack += other.pack;
  quantize += other.quantize;
  memory += other.memory;
}

LoadPart& part_named(std::vector<LoadPart>& parts, const std::string& name) {
  const auto at = std::ranges::find(parts, name, &LoadPart::name);
  if (at != parts.end()) return *at;
  parts.push_back({.name = name});
  return parts.back();
}

std::string tensor_class(const std::string& parameter) {
  using io::Role;
  switch (io::role_of(parameter).role) {
    case Role::embedding:
    case Role::positions:
      return "embedding";
    case Role::query:
    case Role::key:
    case Role::value:
    case Role::joint:
    case Role::attention_out:
      return "attention";
    case Role::gate:
    case Role::up:
    case Role::down:
    case Role::gate_alpha:
    case Role::gate_beta:
      return "mlp";
    case Role::head:
      return "head";
    case Role::other:
    case Role::adapter:
      return "other";
    default:
      return "norm";
  }
}

}  // namespace hearth::models
