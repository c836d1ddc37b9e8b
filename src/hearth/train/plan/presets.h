#pragma once
// The size of a new model for a machine: as large as a share of its memory and
// a length of time allow.
#include <string>
#include <vector>

#include "hearth/train/plan/planner.h"

namespace hearth::train {

struct Preset {
  std::string name;
  double memory_share = 0;  // of the budget
  double hours = 0;         // of training on 20 tokens a parameter
};
// conservative, balanced, aggressive.
const std::vector<Preset>& presets();
// Throws UsageError for another name.
const Preset& preset_named(const std::string& name);

// One size of a model, from the smallest of a ladder up.
struct ModelSize {
  int dim = 0, layers = 0, heads = 0;
  std::int64_t length = 0, tokens_per_step = 0;
};
std::vector<ModelSize> size_ladder();
// The recipe with that size, trained on 20 tokens a parameter.
Recipe sized(const Recipe& recipe, const ModelSize& size);

// Throws UsageError for a recipe that does not make a new model.
void check_sizable(const Recipe& recipe);

struct PresetChoice {
  std::size_t size = 0;  // in the ladder
  Recipe recipe;
  Plan plan;
};
// The largest size whose plan holds to the preset on this machine, whose peak
// must be known; without one, the smallest. Throws UsageError for a recipe that
// does not make a new model.
PresetChoice choose_size(
    const Recipe& recipe,
    const Preset& preset,
    const PlanMachine& machine
);

}  // namespace hearth::train
