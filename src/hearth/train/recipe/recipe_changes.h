#pragma once
// Where two recipes differ, and which differences a run that has begun can
// live with.
#include <string>
#include <vector>

#include "hearth/train/recipe/recipe.h"

namespace hearth::train {

struct RecipeChange {
  std::string key, before, now;  // values as YAML; "off" in an absent section
};

// Every key but run.dir, in the recipe's order. Two ways to write a path are
// one value.
std::vector<RecipeChange> recipe_changes(
    const Recipe& before,
    const Recipe& now
);

// Keys that --resume may change: how a run goes on, not what it is. A name that
// ends in a dot stands for all keys below it.
const std::vector<std::string>& resumable_keys();

// Throws UsageError naming the first key that differs and may not.
void check_resumable(const Recipe& before, const Recipe& now);

}  // namespace hearth::train
