#pragma once
// Where two recipes differ, and which differences a run that has begun can
// live with.
#include <string>
#include <vector>

#include "hearth/train/recipe/recipe.h"

namespace hearth::train {

struct RecipeChange {
  std::string key, before, now;  // values as YAML; "off" in an absent section
  bool resumable = false;        // a run that goes on may have it
};

// Every key but run.dir, in the recipe's order. Two ways to write a path are
// one value.
std::vector<RecipeChange> recipe_changes(
    const Recipe& before,
    const Recipe& now
);

// Throws UsageError naming the first key that differs and may not: --resume
// may change how a run goes on, not what it is. Each field says whether it may
// (base/config.h, may_change); one that says nothing may not.
void check_resumable(const Recipe& before, const Recipe& now);

}  // namespace hearth::train
