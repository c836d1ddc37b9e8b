#include "hearth/train/plan/presets.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"

namespace hearth::train {
namespace {

// What a model of a given size makes good use of.
constexpr double kTokensPerParameter = 20;

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"conservative", 0.25, 0.5},
      {"balanced", 0.5, 4},
      {"aggressive", 0.75, 24},
  };
  return all;
}

const Preset& preset_named(const std::string& name) {
  const auto at = std::ranges::find(presets(), name, &Preset::name);
  if (at != presets().end()) return *at;
  std::vector<std::string> known;
  for (const auto& p : presets()) known.push_back(p.name);
  throw UsageError(
      fmt::format(
          "a preset must be one of {}, got '{}'{}", fmt::join(known, ", "),
          name, did_you_mean(name, known)
      )
  );
}

std::vector<ModelSize> size_ladder() {
  std::vector<ModelSize> ladder;
  for (const int dim :
       {64, 128, 192, 256, 320, 384, 448, 512, 640, 768, 1024, 1280, 1536,
        2048}) {
    const std::int64_t length = dim <= 256 ? 256 : dim <= 512 ? 512 : 1024;
    ladder.push_back(
        {.dim = dim,
         .layers = std::max(2, dim / 64),
         .heads = std::max(2, dim / 64),
         .length = length,
         .tokens_per_step = std::max<std::int64_t>(8192, 16 * length)}
    );
  }
  return ladder;
}

Recipe sized(const Recipe& recipe, const ModelSize& size) {
  Recipe r = recipe;
  r.model.dim = size.dim, r.model.layers = size.layers;
  r.model.heads = size.heads;
  r.model.kv_heads = r.model.head_dim = r.model.ffn = 0;
  r.data.length = size.length;
  r.train.seq_lengths.clear(), r.train.shape_probs.clear();
  r.train.tokens_per_step = size.tokens_per_step;
  r.train.micro_batch_size = r.train.gradient_accumulation_steps = 0;
  r.train.epochs = 0;
  const auto count = count_parameters(planned_model(r).config, {});
  r.train.steps = static_cast<std::int64_t>(std::ceil(
      kTokensPerParameter * static_cast<double>(count.all) /
      static_cast<double>(size.tokens_per_step)
  ));
  return r;
}

void check_sizable(const Recipe& recipe) {
  if (recipe.model.from.empty()) return;
  throw UsageError(
      "a preset must have a new model to size, got a recipe with model.from"
  );
}

PresetChoice choose_size(
    const Recipe& recipe,
    const Preset& preset,
    const PlanMachine& machine
) {
  check_sizable(recipe);
  PlanMachine share = machine;
  share.budget = static_cast<std::size_t>(
      static_cast<double>(machine.budget) * preset.memory_share
  );
  PresetChoice choice;
  const auto ladder = size_ladder();
  for (std::size_t i = 0; i < ladder.size(); ++i) {
    const Recipe r = sized(recipe, ladder[i]);
    const Plan plan = make_plan(r, planned_model(r), share);
    const double seconds =
        plan.step_seconds.value_or(0) * static_cast<double>(plan.steps);
    const bool holds = plan.fits && seconds <= preset.hours * 3600;
    if (i > 0 && !holds) break;
    choice = {i, r, plan};
  }
  return choice;
}

}  // namespace hearth::train
