#pragma once
// Whether a recipe's rows fit the positions of the model they go through.
#include "hearth/models/decoder_config.h"
#include "hearth/train/recipe/recipe.h"

namespace hearth::train {

// Throws UsageError, naming the keys, where a row is longer than a table of
// learnt positions, or than what the recipe declares of a new model. Rotary
// positions of a model that is there have no end.
void check_positions(const Recipe& recipe, const models::DecoderConfig& model);

}  // namespace hearth::train
