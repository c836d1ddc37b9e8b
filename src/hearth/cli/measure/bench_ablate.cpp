#include "hearth/cli/measure/bench_ablate.h"

#include <cstdio>
#include <regex>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/bench/ablate.h"
#include "hearth/cli/data/prepare_data.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/measure/doctor_report.h"
#include "hearth/cli/train/plan_recipe.h"
#include "hearth/cli/train/read_recipe.h"
#include "hearth/train/objectives/language_model.h"

namespace hearth::cli {
namespace {

train::Recipe recipe_of(const AblateFlags& flags, const Context& context) {
  train::Recipe recipe = bench::ablation_recipe();
  if (!flags.recipe.empty()) {
    recipe = {};
    read_recipe({flags.recipe, "", ""}, context, recipe);
  }
  // What is switched are parts of the language model's loss.
  const std::string kind = train::language_model_kind().name;
  if (recipe.train.objective != kind) {
    throw UsageError(
        "--ablate must have a recipe with train.objective " + kind
    );
  }
  // The base is what the planner would run.
  const auto machine = this_machine(recipe, context);
  const auto plan =
      train::make_plan(recipe, train::planned_model(recipe), machine);
  train::check_fits(plan);
  set_memory_budget(machine.budget);
  recipe.train.checkpointing = plan.checkpointing;
  recipe.train.packed = plan.packed;
  recipe.train.micro_batch_size = plan.rows;
  return recipe;
}

std::vector<bench::Ablation> wanted(
    const train::Recipe& recipe,
    const std::string& filter
) {
  const std::regex found(filter, std::regex::icase);
  std::vector<bench::Ablation> chosen;
  for (auto& a : bench::ablations(recipe)) {
    // The first row is always chosen: the others are compared with it.
    if (chosen.empty() || std::regex_search(a.what, found)) {
      chosen.push_back(std::move(a));
    }
  }
  return chosen;
}

}  // namespace

void bench_ablate(Context& context, const AblateFlags& flags) {
  const double start = seconds_now();
  const train::Recipe recipe = recipe_of(flags, context);
  bench::AblateOptions options;
  options.tokens = static_cast<std::uint64_t>(flags.tokens);
  options.prepare = [&](const data::DataConfig& d) {
    return prepare_with_progress(context, d);
  };
  options.stop = [] { return InterruptGuard::interrupted(); };
  const bool json = context.common.json;
  const InterruptGuard guard;
  if (!json) context.print(bench::ablation_head());
  const auto ablations = wanted(recipe, flags.filter);
  // One run before the first row pays for what is only made once: data,
  // threads, code pages.
  bench::AblateOptions first = options;
  first.tokens = 1;
  bench::run_ablation(recipe, ablations.front(), first);
  std::vector<bench::AblationRow> rows;
  for (const auto& ablation : ablations) {
    if (flags.limit > 0 && seconds_now() - start > flags.limit &&
        !rows.empty()) {
      context.note(
          fmt::format(
              "--limit reached: {} and what follows were not run", ablation.what
          )
      );
      break;
    }
    if (json) context.note(fmt::format("{} ...", ablation.what));
    rows.push_back(bench::run_ablation(recipe, ablation, options));
    if (!json) {
      context.print(bench::ablation_line(rows.back(), rows.front()));
      std::fflush(stdout);
    }
    if (InterruptGuard::interrupted()) {
      throw Interrupted(
          fmt::format("interrupted after {} rows", rows.size() - 1)
      );
    }
  }
  if (!json) return;
  Json document;
  document["machine"] = to_json(gather_report(context.common.device));
  document["tokens"] = flags.tokens;
  document["rows"] = Json::array();
  for (const auto& row : rows) {
    document["rows"].push_back(bench::to_json(row, rows.front()));
  }
  context.json("hearth.bench/1", document);
}

}  // namespace hearth::cli
