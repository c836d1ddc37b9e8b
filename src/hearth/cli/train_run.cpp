#include "hearth/cli/train_run.h"

#include <memory>

#include <fmt/format.h>

#include "hearth/base/memory.h"
#include "hearth/base/progress.h"
#include "hearth/base/units.h"
#include "hearth/cli/doctor_report.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/plan_recipe.h"
#include "hearth/cli/prepare_data.h"
#include "hearth/cli/read_recipe.h"
#include "hearth/cli/version.h"
#include "hearth/train/run_model.h"

namespace hearth::cli {
namespace {

// Refuses what cannot fit; leaves the planner's choices in the recipe.
train::Plan plan_run(train::Recipe& recipe, const Context& context) {
  const auto machine = this_machine(recipe, context);
  set_memory_budget(machine.budget);
  context.note(
      fmt::format(
          "memory budget {} ({})", format_bytes(machine.budget),
          machine.budget_reason
      )
  );
  auto plan = train::make_plan(recipe, train::planned_model(recipe), machine);
  train::check_fits(plan);
  recipe.train.checkpointing = plan.checkpointing;
  recipe.train.packed = plan.packed;
  return plan;
}

std::string progress_note(const train::StepMetrics& m) {
  std::string text =
      fmt::format("loss {:.4f}  {:.0f} tok/s", m.smoothed, m.tokens_per_s);
  if (m.share_of_peak) {
    text += fmt::format("  {:.0f} % of peak", 100 * *m.share_of_peak);
  }
  text += "  " + format_bytes(m.memory);
  if (m.stall_ms > 10) text += fmt::format("  stall {:.0f} ms", m.stall_ms);
  if (m.valid_loss) text += fmt::format("  valid {:.4f}", *m.valid_loss);
  return text;
}

void describe(const train::Session& s, const Context& context) {
  const auto& set = s.model->parameters();
  const auto& report = s.data.result.report;
  const auto all = static_cast<double>(set.count());
  const auto trained = static_cast<double>(set.count(true));
  context.note(
      fmt::format(
          "{} parameters, {} trained; {} tokens to train on, {} held out",
          format_count(all), format_count(trained),
          format_count(
              static_cast<double>(report.tokens - report.valid_tokens)
          ),
          format_count(static_cast<double>(report.valid_tokens))
      )
  );
}

}  // namespace

train::TrainResult train_run(
    const Context& context,
    train::Recipe recipe,
    train::RunMode mode
) {
  const std::string asked = recipe_yaml(recipe);
  const train::Plan plan = plan_run(recipe, context);
  const std::string dir = recipe.run.dir;
  const bool resume = mode == train::RunMode::resume;
  train::RunDirectory run(dir, mode);
  train::Session session =
      train::open_session(recipe, [&](const data::DataConfig& d) {
        return prepare_with_progress(context, d);
      });
  describe(session, context);
  // A run that goes on with other values goes on with them the next time too.
  run.describe(
      {.config = resume ? asked : recipe_yaml(recipe),
       .machine = to_json(gather_report(context.common.device)),
       .version = std::string(version_text())}
  );
  if (!resume) train::describe_model(session, run.path());

  const InterruptGuard guard;
  std::unique_ptr<Progress> progress;
  train::TrainHooks hooks;
  hooks.peak_gflops = plan.peak_gflops;
  hooks.rows = static_cast<std::uint32_t>(plan.rows);
  hooks.most_rows = static_cast<std::uint32_t>(plan.settled_rows);
  hooks.note = [&](const std::string& text) { context.note(text); };
  hooks.stop = [] { return InterruptGuard::interrupted(); };
  hooks.on_step = [&](const train::StepMetrics& m) {
    if (!progress) {
      progress = std::make_unique<Progress>(Progress::Options{
          "train", "steps", static_cast<std::uint64_t>(m.steps)
      });
    }
    progress->update(static_cast<std::uint64_t>(m.step), progress_note(m));
  };
  train::Trainer trainer(session, run, std::move(hooks));
  if (resume && !trainer.resume()) {
    context.note("no checkpoint in the run yet: it starts from the beginning");
  }
  const train::TrainResult result = trainer.run();
  if (progress) progress->finish();
  trainer.restore_best();
  train::write_model(session, dir);
  return result;
}

}  // namespace hearth::cli
