#include "hearth/cli/train/train_run.h"

#include <cmath>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/memory.h"
#include "hearth/base/progress.h"
#include "hearth/base/shell_word.h"
#include "hearth/base/units.h"
#include "hearth/cli/data/data_notes.h"
#include "hearth/cli/data/prepare_data.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/measure/doctor_report.h"
#include "hearth/cli/train/plan_recipe.h"
#include "hearth/cli/train/read_recipe.h"
#include "hearth/cli/version.h"
#include "hearth/train/loop/run_model.h"
#include "hearth/train/recipe/recipe_changes.h"
#include "hearth/train/recipe/recipe_paths.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

// Plans the run, throws where it cannot fit, and writes the planner's choices
// into the recipe.
train::Plan plan_run(
    train::Recipe& recipe,
    bool begun,
    const Context& context
) {
  auto machine = this_machine(recipe, context);
  machine.begun = begun;
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
      m.smoothed ? fmt::format("loss {:.4f}", *m.smoothed) : "no loss yet";
  text += fmt::format("  {:.0f} tok/s", m.tokens_per_s);
  if (m.share_of_peak) {
    text += fmt::format("  {:.0f} % of peak", 100 * *m.share_of_peak);
  }
  text += "  step peak " + format_bytes(m.memory);
  if (m.stall_ms > 10) text += fmt::format("  stall {:.0f} ms", m.stall_ms);
  if (m.valid_loss) text += "  valid " + loss_text(*m.valid_loss);
  return text;
}

// The progress line, which steps and the validations between them share.
class TrainProgress {
 public:
  void step(const train::StepMetrics& m) {
    show(m.step, m.steps, progress_note(m));
  }
  void validation(double share, std::int64_t step, std::int64_t steps) {
    show(step, steps, fmt::format("validating, {:.0f} %", 100 * share));
  }
  void finish() {
    if (line_) line_->finish();
  }

 private:
  std::unique_ptr<Progress> line_;

  void show(std::int64_t step, std::int64_t steps, const std::string& note) {
    if (!line_) {
      line_ = std::make_unique<Progress>(
          Progress::Options{"train", "steps", static_cast<std::uint64_t>(steps)}
      );
    }
    line_->update(static_cast<std::uint64_t>(step), note);
  }
};

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

// Training from a run into that very run would remove what it starts from.
void check_apart(const train::Recipe& recipe) {
  const auto from = train::parse_run_reference(recipe.model.from);
  std::error_code missing;
  if (!from || !fs::equivalent(from->run, recipe.run.dir, missing)) return;
  throw UsageError(
      fmt::format(
          "a run must not start from itself: model.from and run.dir are both "
          "{}",
          recipe.run.dir
      )
  );
}

train::TrainHooks make_hooks(
    const Context& context,
    const train::Plan& plan,
    TrainProgress& progress
) {
  train::TrainHooks hooks;
  hooks.peak_gflops = plan.peak_gflops;
  hooks.rows = static_cast<std::uint32_t>(plan.rows);
  hooks.most_rows = static_cast<std::uint32_t>(plan.settled_rows);
  hooks.note = [&](const std::string& text) { context.note(text); };
  hooks.warn = [](const std::string& text) { log_warning("{}", text); };
  hooks.stop = [] { return InterruptGuard::interrupted(); };
  hooks.on_step = [&](const train::StepMetrics& m) { progress.step(m); };
  hooks.on_validation = [&](double share, auto step, auto steps) {
    progress.validation(share, step, steps);
  };
  return hooks;
}

// Trains. Where a file cannot be written, the error says how to resume.
train::TrainResult run_steps(train::Trainer& trainer, const std::string& dir) {
  try {
    return trainer.run();
  } catch (const IoError& e) {
    throw IoError(
        e.what(), fmt::format(
                      "its checkpoints stand; once that is put right, hearth "
                      "train --resume {} goes on",
                      shell_word(dir)
                  )
    );
  }
}

// Writes the model that the run made. Throws Error when the loss has diverged,
// after writing the best checkpoint's model if there is one.
void finish(
    const train::Session& session,
    train::Trainer& trainer,
    train::TrainResult& result,
    const std::string& dir
) {
  if (!trainer.restore_best()) result.best_valid_loss.reset();
  const bool best = result.best_valid_loss.has_value();
  if (result.diverged.empty() || best) {
    try {
      train::write_model(session, dir);
    } catch (const IoError& e) {
      throw IoError(
          e.what(), fmt::format(
                        "its checkpoints stand; once that is put right, hearth "
                        "train --resume {} writes the model",
                        shell_word(dir)
                    )
      );
    }
  }
  if (result.diverged.empty()) return;
  throw Error(
      "training diverged: " + result.diverged,
      best ? fmt::format(
                 "{}/model holds the best, of step {}; a lower optim.lr may "
                 "help",
                 dir, result.best_step
             )
           : fmt::format("{}/model was not written; lower optim.lr", dir)
  );
}

}  // namespace

std::string loss_text(double loss) {
  return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "not finite";
}

train::TrainResult train_run(
    const Context& context,
    train::Recipe recipe,
    train::RunMode mode
) {
  const InterruptGuard guard(
      context.common.quiet
          ? nullptr
          : "\ninterrupted: ends as soon as work is saved (again: at once)\n"
  );
  check_apart(recipe);
  recipe = train::with_absolute_paths(std::move(recipe));
  const std::string asked = recipe_yaml(recipe);
  const std::string dir = recipe.run.dir;
  const bool resume = mode == train::RunMode::resume;
  if (resume) train::check_resumable(train::run_recipe(dir), recipe);
  const train::Plan plan = plan_run(recipe, resume, context);
  train::RunDirectory run(dir, mode);
  train::Session session =
      train::open_session(recipe, [&](const data::DataConfig& d) {
        return prepare_with_progress(context, d);
      });
  describe(session, context);
  tell_data(session, context);
  TrainProgress progress;
  train::Trainer trainer(session, run, make_hooks(context, plan, progress));
  if (resume && !trainer.resume()) {
    context.note("no checkpoint in the run yet: it starts from the beginning");
  }
  // Values that --resume changes hold for later resumes too, so they are
  // written down, now that all of them have passed their checks.
  run.describe(
      {.config = resume ? asked : recipe_yaml(recipe),
       .machine = to_json(gather_report(context.common.device)),
       .version = std::string(version_text())}
  );
  train::describe_model(session, run.path());
  train::TrainResult result = run_steps(trainer, dir);
  progress.finish();
  finish(session, trainer, result, dir);
  result.warnings = trainer.warnings();
  return result;
}

}  // namespace hearth::cli
