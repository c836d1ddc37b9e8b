#pragma once
// Reads a training recipe from the arguments of a command: file, overrides,
// flags.
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
  bool threads = false;  // take --threads or its variable, where given
  bool remarks = true;
  std::string origin = "command line";  // of the overrides, for messages
};

// What would run, with the origin of each value.
struct RecipeValues {
  std::string text;
  Json json;
};

// Fills the recipe and checks it, and warns on stderr of settings that will not
// do what they seem to. Without run.dir the run goes to runs/NAME, after the
// recipe's name; without row lengths it takes those of the hardware profile.
RecipeValues read_recipe(
    const RecipeArguments& given,
    const Context& context,
    train::Recipe& recipe
);

// Uses run.threads threads where neither flag nor environment gives a number.
// To be called before anything is computed.
void use_threads(const Context& context, const train::Recipe& recipe);

// The recipe as YAML that reads back to the same values.
std::string recipe_yaml(train::Recipe recipe);

}  // namespace hearth::cli
