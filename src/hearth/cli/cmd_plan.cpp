// hearth plan RECIPE [overrides]
#include "hearth/cli/command.h"
#include "hearth/cli/plan_recipe.h"
#include "hearth/cli/read_recipe.h"
#include "hearth/ops/device.h"

namespace hearth::cli {

void cmd_plan(Context& context, const std::vector<std::string>& words) {
  std::vector<std::string> given;
  std::string machine;
  Args args(
      "plan",
      "What a recipe will take before anything runs: memory at its peak part "
      "by part, time of a step, micro-batch and checkpointing, and what would "
      "fit where it does not.",
      context.common
  );
  args.rest("RECIPE", given, "Recipe, then overrides such as data.length=512");
  args.option(
      "--machine", machine, "Plan for this hardware profile, not this machine"
  );
  args.example("hearth plan recipes/quickstart.yaml", "memory and time here");
  args.example(
      "hearth plan recipe.yaml train.precision=fp32 train.memory=4G",
      "in another precision, within four gigabytes"
  );
  args.example("hearth plan recipe.yaml --json", "for a program");
  if (!context.parse(args, words)) return;

  train::Recipe recipe;
  read_recipe({given, "", ""}, context, recipe);
  ops::use_device(context.common.device);
  const auto plan = train::make_plan(
      recipe, train::planned_model(recipe),
      machine.empty() ? this_machine(recipe, context)
                      : profile_machine(machine, recipe)
  );
  if (context.common.json) return context.json("hearth.plan/1", plan.to_json());
  context.print(plan_text(plan, recipe));
}

}  // namespace hearth::cli
