#pragma once
// The row lengths a hardware profile would have a run train with, where its
// recipe names none.
#include <string>

#include "hearth/cli/command.h"
#include "hearth/train/recipe/recipe.h"

namespace hearth::cli {

struct ProfileLengths {
  std::string profile;
  std::vector<std::int64_t> lengths;  // empty: none of them suits the recipe
  std::vector<double> shares;
};

// The mix of the profile of that name, of hardware.profile, or of the one that
// matches this machine. Lengths that the step, the model or its max_length
// cannot hold are left out and the others share their part.
ProfileLengths profile_lengths(
    const train::Recipe& recipe,
    const std::string& profile,
    const Context& context
);

}  // namespace hearth::cli
