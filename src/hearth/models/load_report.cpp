#include "hearth/models/load_report.h"

#include <algorithm>

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
  const auto has = [&](const char* part) {
    return parameter.find(part) != std::string::npos;
  };
  if (has("norm") || has("ln_")) return "norm";
  if (has("attn")) return "attention";
  if (has("mlp")) return "mlp";
  if (has("embed") || has("wte") || has("wpe")) return "embedding";
  return has("lm_head") ? "head" : "other";
}

}  // namespace hearth::models
