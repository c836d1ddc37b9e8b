#pragma once
// Where the files of a recipe lie, whatever folder a later command is called
// from.
#include "hearth/train/recipe/recipe.h"

namespace hearth::train {

// With absolute paths of data, tokenizer, template, cache, model and adapter.
// What is no path (a share, hf:, the name of a template) stays as it is, and so
// does a model that is not there. run.dir is what the caller calls it by.
Recipe with_absolute_paths(Recipe recipe);

}  // namespace hearth::train
