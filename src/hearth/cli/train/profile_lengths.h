#pragma once
// The row lengths that a hardware profile recommends for a run whose recipe
// names none.
#include <string>

#include "hearth/cli/command.h"
#include "hearth/train/recipe/recipe.h"

namespace hearth::cli {

struct ProfileLengths {
  std::string profile;
  std::vector<std::int64_t> lengths;  // empty: none suits the recipe
  std::vector<double> shares;
};

// The mix of lengths of the profile `profile`, else of hardware.profile, else
// of the profile that matches this machine. Lengths that do not divide the
// tokens of a step or exceed the model's max_length are left out, and the
// shares of the others grow to fill their place.
ProfileLengths profile_lengths(
    const train::Recipe& recipe,
    const std::string& profile,
    const Context& context
);

}  // namespace hearth::cli
