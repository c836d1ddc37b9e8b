// Which hardware profile fits this machine, and the lengths it trains with.
#include <cstdio>

#include "hearth/hardware/profile.h"
#include "hearth/kernels/table.h"

int main() {
  using namespace hearth;
  const auto machine = hardware::detect();
  const auto profiles = hardware::load_profiles("");
  const auto traits = hardware::traits_of(machine, kernels::best().isa, {});
  const auto match = hardware::match_profile(profiles, traits);
  std::printf("%s (%s)\n", match.profile->key.c_str(), match.reason.c_str());
  for (std::size_t i = 0; i < match.profile->shape_mix.lengths.size(); ++i) {
    std::printf(
        "  length %d: %.0f %% of steps\n", match.profile->shape_mix.lengths[i],
        100 * match.profile->shape_mix.probs[i]
    );
  }
}
