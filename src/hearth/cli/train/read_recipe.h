#pragma once
// A training recipe from the words of a command line: file, overrides, flags.
#include <string>
#include <vector>

#include "hearth/cli/command.h"
#include "hearth/train/recipe/recipe.h"

namespace hearth::cli {

struct RecipeArguments {
  std::vector<std::string> words;  // the recipe ("-": stdin), then overrides
  std::string output;              // run.dir
  std::string resume;              // a run directory whose recipe is taken
  std::string profile = {};        // in place of the one that matches
  bool need_file = true;           // overrides alone are not checked as one
  bool lengths = true;             // the profile's, where it names none
  bool threads = false;            // of flag or environment, where given
  bool remarks = true;
  std::string origin = "command line";  // of the overrides, for messages
};

// What would run, with the origin of each value.
struct RecipeValues {
  std::string text;
  Json json;
};

// Fills the recipe and checks it; says on stderr what in it will not do what
// it seems to. Without run.dir the run goes to runs/NAME, after the recipe's
// name; without row lengths it takes the hardware profile's.
RecipeValues read_recipe(
    const RecipeArguments& given,
    const Context& context,
    train::Recipe& recipe
);

// Takes run.threads where neither flag nor environment says how many. Before
// the first number is crunched.
void use_threads(const Context& context, const train::Recipe& recipe);

// The recipe as YAML that reads back to the same values.
std::string recipe_yaml(train::Recipe recipe);

}  // namespace hearth::cli
