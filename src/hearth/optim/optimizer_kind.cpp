#include "hearth/optim/optimizer_kind.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::optim {

std::span<const OptimizerKind> optimizer_kinds() {
  static const std::array kinds = {
      adamw_kind(), lion_kind(), adafactor_kind(), muon_kind(), adamw8_kind()
  };
  return kinds;
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerKind& kind : optimizer_kinds()) {
    names.emplace_back(kind.name);
  }
  return names;
}

const OptimizerKind& optimizer_kind(std::string_view name) {
  const auto kinds = optimizer_kinds();
  const auto at = std::ranges::find(kinds, name, &OptimizerKind::name);
  if (at != kinds.end()) return *at;
  throw UsageError(fmt::format("[optim.make] there is no optimiser {}", name));
}

ops::StateArrays one_moment(const OptimConfig&, const mx::Shape& shape) {
  return {{"m", shape}};
}

const OptimizerKind& kind_of(
    const OptimConfig& config,
    const nn::WeightSpec& parameter
) {
  const OptimizerKind& kind = optimizer_kind(config.name);
  const bool takes = kind.takes == nullptr || kind.takes(config, parameter);
  return takes ? kind : optimizer_kind("adamw");
}

}  // namespace hearth::optim
