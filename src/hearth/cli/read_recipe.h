#pragma once
// A training recipe from the words of a command line: file, overrides, flags.
#include <string>
#include <vector>

#include "hearth/cli/command.h"
#include "hearth/train/recipe.h"

namespace hearth::cli {

struct RecipeArguments {
  std::vector<std::string> words;  // the recipe, then overrides
  std::string output;              // run.dir
  std::string resume;              // a run directory whose recipe is taken
};

// Fills the recipe and returns it as lines with the origin of each value.
// Without run.dir the run goes to runs/NAME, after the recipe's name.
std::string read_recipe(
    const RecipeArguments& given,
    const Context& context,
    train::Recipe& recipe
);

// The recipe as YAML that reads back to the same values.
std::string recipe_yaml(train::Recipe recipe);

}  // namespace hearth::cli
