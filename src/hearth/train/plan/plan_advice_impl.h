#pragma once
// The smallest change to a recipe that would make it fit.
#include <functional>
#include <string>

#include "hearth/train/recipe/recipe.h"

namespace hearth::train {

// One change as overrides to type, or several where no single one is enough;
// empty when nothing helps. begun: only what --resume may change.
std::string smallest_change(
    const Recipe& recipe,
    bool begun,
    const std::function<bool(const Recipe&)>& fits
);

}  // namespace hearth::train
