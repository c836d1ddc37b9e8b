// hearth train.
#include <cmath>
#include <memory>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/memory.h"
#include "hearth/base/progress.h"
#include "hearth/base/units.h"
#include "hearth/cli/command.h"
#include "hearth/cli/doctor_report.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/plan_recipe.h"
#include "hearth/cli/prepare_data.h"
#include "hearth/cli/read_recipe.h"
#include "hearth/cli/version.h"
#include "hearth/ops/device.h"
#include "hearth/train/run_model.h"
#include "hearth/train/trainer.h"

namespace hearth::cli {
namespace {

struct TrainFlags {
  std::vector<std::string> words;
  std::string output, resume;
  bool print_config = false, force = false, keys = false;
};

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

Json result_json(const train::TrainResult& r, const std::string& run) {
  Json j{
      {"steps", r.steps},
      {"tokens", r.tokens},
      {"train_loss", r.train_loss},
      {"tokens_per_s", r.tokens_per_s},
      {"peak_mib", static_cast<double>(r.peak_bytes) / (1 << 20)},
      {"run", run}
  };
  if (r.valid_loss) j["valid_loss"] = *r.valid_loss;
  if (r.best_valid_loss) j["best_valid_loss"] = *r.best_valid_loss;
  if (r.share_of_peak) j["share_of_peak"] = *r.share_of_peak;
  if (r.stopped_early) j["stopped_early"] = true;
  return j;
}

std::string result_text(const train::TrainResult& r, const std::string& run) {
  std::string text = fmt::format(
      "{} steps, {} tokens, train loss {:.4f}", r.steps,
      format_count(static_cast<double>(r.tokens)), r.train_loss
  );
  if (r.valid_loss) {
    text += fmt::format(
        ", validation loss {:.4f} (perplexity {:.2f})", *r.valid_loss,
        std::exp(*r.valid_loss)
    );
  }
  text += fmt::format(
      "\n{:.0f} tokens/s, peak memory {}\nrun: {}\n", r.tokens_per_s,
      format_bytes(r.peak_bytes), run
  );
  return text;
}

}  // namespace

void cmd_train(Context& context, const std::vector<std::string>& words) {
  TrainFlags flags;
  Args args(
      "train",
      "Train a model from a recipe: from nothing, the whole of one, or "
      "adapters.",
      context.common
  );
  args.rest(
      "RECIPE", flags.words, "Recipe, then overrides such as optim.lr=3e-4"
  );
  args.option("-o,--output", flags.output, "Run directory (run.dir)");
  args.option("--resume", flags.resume, "Go on with this run directory");
  args.flag("--force", flags.force, "Start anew in a directory that is in use");
  args.flag(
      "--print-config", flags.print_config,
      "Print what would run and where each value came from"
  );
  args.flag("--keys", flags.keys, "List every recipe key and its default");
  args.example(
      "hearth train recipes/quickstart.yaml", "a small model from nothing"
  );
  args.example(
      "hearth train recipe.yaml optim.lr=3e-4 train.steps=200 -o runs/try",
      "with values of your own"
  );
  args.example("hearth train --resume runs/try", "go on after an interruption");
  if (!context.parse(args, words)) return;

  if (flags.keys) {
    train::Recipe defaults;
    return context.print(ConfigReader(defaults).help());
  }
  RecipeArguments given{flags.words, flags.output, flags.resume};
  train::Recipe recipe;
  const std::string dump = read_recipe(given, context, recipe);
  if (flags.print_config) return context.print(dump);
  ops::use_device(context.common.device);
  const train::Plan plan = plan_run(recipe, context);

  const std::string dir = recipe.run.dir;
  const bool resume = !flags.resume.empty();
  train::RunDirectory run(
      dir, resume        ? train::RunMode::resume
           : flags.force ? train::RunMode::overwrite
                         : train::RunMode::fresh
  );
  train::Session session =
      train::open_session(recipe, [&](const data::DataConfig& d) {
        return prepare_with_progress(context, d);
      });
  describe(session, context);
  // A run that goes on with other values goes on with them the next time too.
  if (!resume || !flags.words.empty()) {
    run.describe(
        {.config = recipe_yaml(recipe),
         .machine = to_json(gather_report(context.common.device)),
         .version = std::string(version_text())}
    );
  }
  if (!resume) train::describe_model(session, run.path());

  const InterruptGuard guard;
  std::unique_ptr<Progress> progress;
  train::TrainHooks hooks;
  hooks.peak_gflops = plan.peak_gflops;
  hooks.rows = static_cast<std::uint32_t>(plan.rows);
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
  if (context.common.json) {
    return context.json("hearth.train/1", result_json(result, dir));
  }
  context.print(result_text(result, dir));
}

}  // namespace hearth::cli
