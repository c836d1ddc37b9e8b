// hearth plan RECIPE [overrides]
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/cli/command.h"
#include "hearth/cli/train/plan_recipe.h"
#include "hearth/cli/train/read_recipe.h"
#include "hearth/ops/device.h"

namespace hearth::cli {
namespace {

// The recipe of one of several processes, which trains on its share of the
// rows. All together make the recipe's update.
train::Recipe share_of(const train::Recipe& recipe, std::int64_t ranks) {
  const auto tokens = static_cast<std::int64_t>(recipe.step_tokens());
  const std::int64_t unit = recipe.objective().needs.row_group;
  auto lengths = recipe.train.seq_lengths;
  if (lengths.empty()) lengths = {recipe.longest()};
  for (const auto length : lengths) {
    if (tokens / length % (ranks * unit) == 0) continue;
    throw UsageError(
        fmt::format(
            "--ranks must divide the {} rows of {} tokens of a step, got {}",
            tokens / length, length, ranks
        )
    );
  }
  train::Recipe own = recipe;
  own.train.tokens_per_step = tokens / ranks;
  own.train.gradient_accumulation_steps = 0;
  return own;
}

std::string ranks_text(
    const train::Plan& plan,
    const train::Recipe& own,
    std::int64_t ranks
) {
  const auto tokens = static_cast<double>(own.step_tokens());
  std::string text = fmt::format(
      "ranks     {}, each on a machine like this with {} tokens of a step; "
      "memory and time are one rank's\n",
      ranks, own.step_tokens()
  );
  if (plan.step_seconds) {
    text += fmt::format(
        "          {:.0f} tokens/s together\n",
        static_cast<double>(ranks) * tokens / *plan.step_seconds
    );
  }
  return text + fmt::format(
                    "          communication is not counted: {} of gradients "
                    "are summed between ranks each step\n",
                    format_bytes(4 * plan.parameters.trained)
                );
}

void add_ranks(
    const train::Plan& plan,
    const train::Recipe& own,
    std::int64_t ranks,
    Json& j
) {
  j["ranks"] = ranks;
  j["tokens_per_rank"] = own.step_tokens();
  j["communication_counted"] = false;
  j["gradient_bytes"] = 4 * plan.parameters.trained;
}

}  // namespace

void cmd_plan(Context& context, const std::vector<std::string>& words) {
  std::vector<std::string> given;
  std::string machine;
  std::int64_t ranks = 1;
  Args args(
      "plan",
      "What a recipe will take before anything runs: memory at its peak part "
      "by part, time of a step, micro-batch and checkpointing, and what would "
      "fit where it does not (then the exit code is 3).",
      context.common
  );
  args.rest("RECIPE", given, "Recipe, then overrides such as data.length=512");
  args.option(
      "--machine", machine, "Plan for this hardware profile, not this machine"
  );
  args.option(
      "--ranks", ranks,
      "Data parallel over so many processes: memory, tokens and time of one"
  );
  args.example("hearth plan recipes/quickstart.yaml", "memory and time here");
  args.example(
      "hearth plan recipe.yaml train.precision=fp32 train.memory=4G",
      "in another precision, within four gigabytes"
  );
  args.example("hearth plan recipe.yaml --json", "for a program");
  if (!context.parse(args, words)) return;
  if (ranks < 1 || ranks > 65536) {
    throw UsageError(
        fmt::format("--ranks must be from 1 to 65536, got {}", ranks)
    );
  }
  train::Recipe recipe;
  read_recipe({given, "", "", machine}, context, recipe);
  use_threads(context, recipe);
  ops::use_device(context.common.device);
  if (ranks > 1) recipe = share_of(recipe, ranks);
  const auto planned_for = machine.empty() ? this_machine(recipe, context)
                                           : profile_machine(machine, recipe);
  const auto plan =
      train::make_plan(recipe, train::planned_model(recipe), planned_for);
  context.said_no = !plan.fits;
  if (context.common.json) {
    Json j = plan.to_json();
    j["threads"] = planned_for.threads;
    if (ranks > 1) add_ranks(plan, recipe, ranks, j);
    return context.json("hearth.plan/1", std::move(j));
  }
  context.print(
      plan_text(plan, recipe) +
      (ranks > 1 ? ranks_text(plan, recipe, ranks) : "")
  );
}

}  // namespace hearth::cli
