#pragma once
// What is known of an optimiser before it is made: which parameters its rule
// updates, the state it keeps for one, what its step works in, how to make it.
// The optimiser makes its state from this description and the planner counts
// it, so that a new one is a kind of its own and a line in the table.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/nn/weight.h"
#include "hearth/optim/optim_config.h"
#include "hearth/optim/update_rule.h"

namespace hearth::optim {

struct OptimizerKind {
  std::string_view name;  // the value of optim.name
  // The betas that are usual for it.
  std::pair<double, double> betas = {0.9, 0.95};
  // The kind, one that keeps less, to advise in its place where memory is
  // short; empty: none.
  std::string_view smaller = {};
  // Whether its rule updates that parameter; AdamW's updates those that it
  // leaves. Null: it leaves none.
  bool (*takes)(const OptimConfig&, const nn::WeightSpec&) = nullptr;
  // What the rule keeps for a parameter of that shape.
  ops::StateArrays (*state)(const OptimConfig&, const mx::Shape&);
  // Bytes that a step in place works in for such a parameter, which the
  // allocator keeps for the next one of that shape. Null: none to speak of.
  std::size_t (*workspace)(const mx::Shape&) = nullptr;
  // The rule with that state, made of what `state` describes.
  std::unique_ptr<UpdateRule> (*make)(const OptimConfig&, RuleState);
};

// In the order of the table. A reference stays good.
std::span<const OptimizerKind> optimizer_kinds();
std::vector<std::string> optimizer_names();
// Throws UsageError where there is none of that name.
const OptimizerKind& optimizer_kind(std::string_view name);

// The kind whose rule updates that parameter under that configuration.
const OptimizerKind& kind_of(const OptimConfig& config, const nn::WeightSpec&);

// What a kind is made of. Rules that keep one array of the weight's shape, "m":
ops::StateArrays one_moment(const OptimConfig&, const mx::Shape& shape);
// Rules whose constructors take just this:
template <class Rule>
std::unique_ptr<UpdateRule> make_rule(const OptimConfig& c, RuleState state) {
  return std::make_unique<Rule>(c, std::move(state));
}

// Each is described beside its rule: adamw.cpp, adafactor.cpp, muon.cpp.
OptimizerKind adamw_kind();
OptimizerKind adamw8_kind();
OptimizerKind lion_kind();
OptimizerKind adafactor_kind();
OptimizerKind muon_kind();

}  // namespace hearth::optim
