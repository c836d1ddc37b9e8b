#include "hearth/cli/train/profile_lengths.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "hearth/base/env.h"
#include "hearth/cli/measure/doctor_report.h"
#include "hearth/hardware/profile.h"
#include "hearth/train/plan/planner.h"

namespace hearth::cli {
namespace {

std::int64_t most_positions(const train::Recipe& recipe) {
  if (recipe.model.max_length > 0) return recipe.model.max_length;
  if (recipe.model.from.empty()) return std::numeric_limits<int>::max();
  return train::planned_model(recipe).config.max_length;
}

// Whether a step is a whole number of such rows. Where the recipe fixes rows
// and accumulation, the step's tokens follow from the longest row, and it is.
bool fills_the_step(const train::Recipe& recipe, std::int64_t length) {
  const auto& t = recipe.train;
  if (t.micro_batch_size > 0 && t.gradient_accumulation_steps > 0) return true;
  return t.tokens_per_step % length == 0;
}

}  // namespace

ProfileLengths profile_lengths(
    const train::Recipe& recipe,
    const std::string& profile,
    const Context& context
) {
  const std::string& named =
      !profile.empty() ? profile : recipe.hardware.profile;
  const auto all = hardware::load_profiles(env::config_folder() + "/profiles");
  ProfileLengths out;
  out.profile =
      named != "auto" ? named : gather_report(context.common.device).profile;
  const auto& mix = hardware::profile_named(all, out.profile).shape_mix;
  const auto most = most_positions(recipe);
  for (std::size_t i = 0; i < mix.lengths.size(); ++i) {
    const std::int64_t length = mix.lengths[i];
    const bool suits = length >= 8 && length <= most && mix.probs[i] > 0 &&
                       fills_the_step(recipe, length);
    if (!suits) continue;
    out.lengths.push_back(length);
    out.shares.push_back(mix.probs[i]);
  }
  const double sum = std::accumulate(out.shares.begin(), out.shares.end(), 0.0);
  for (double& share : out.shares) share /= sum;
  return out;
}

}  // namespace hearth::cli
