// hearth train.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/cli/command.h"
#include "hearth/cli/config_json.h"
#include "hearth/cli/train/read_recipe.h"
#include "hearth/cli/train/train_run.h"
#include "hearth/ops/device.h"
#include "hearth/train/loop/run_model.h"
#include "hearth/train/recipe/recipe_changes.h"

namespace hearth::cli {
namespace {

struct TrainFlags {
  std::vector<std::string> words;
  std::string output, resume;
  bool print_config = false, force = false, keys = false;
};

// The result as JSON, without what was not measured.
Json result_json(const train::TrainResult& r, const std::string& run) {
  Json j{{"steps", r.steps}, {"tokens", r.tokens}, {"run", run}};
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) j[key] = *value;
  };
  add("train_loss", r.train_loss);
  add("valid_loss", r.valid_loss);
  for (const auto& [name, mean] : r.valid_means) j["valid_" + name] = mean;
  add("best_valid_loss", r.best_valid_loss);
  if (r.best_valid_loss) j["best_step"] = r.best_step;
  add("tokens_per_s", r.tokens_per_s);
  add("share_of_peak", r.share_of_peak);
  if (r.peak_bytes > 0) {
    j["peak_mib"] = static_cast<double>(r.peak_bytes) / (1 << 20);
  }
  if (r.stopped_early) j["stopped_early"] = true;
  if (!r.warnings.empty()) j["warnings"] = r.warnings;
  return j;
}

std::string validation_text(
    double loss,
    const train::NamedValues& means,
    const train::ObjectiveKind& objective
) {
  std::string more;
  if (objective.describe) more = objective.describe(loss, means);
  if (!more.empty()) more = " (" + more + ")";
  return fmt::format("validation loss {}{}", loss_text(loss), more);
}

std::string result_text(
    const train::TrainResult& r,
    const std::string& run,
    const train::ObjectiveKind& objective
) {
  std::string text = fmt::format(
      "{} step{}, {} tokens", r.steps, r.steps == 1 ? "" : "s",
      format_count(static_cast<double>(r.tokens))
  );
  if (r.train_loss) text += fmt::format(", train loss {:.4f}", *r.train_loss);
  if (r.valid_loss) {
    text += ", " + validation_text(*r.valid_loss, r.valid_means, objective);
  }
  if (r.stopped_early)
    text += "\nstopped early: the validation loss no longer fell";
  if (r.best_valid_loss && r.best_step != r.steps) {
    text += fmt::format(
        "\nthe model is that of the best step, {}: validation loss {}",
        r.best_step, loss_text(*r.best_valid_loss)
    );
  }
  if (r.tokens_per_s) {
    text += fmt::format(
        "\n{:.0f} tokens/s, peak memory {}", *r.tokens_per_s,
        format_bytes(r.peak_bytes)
    );
  }
  return text + fmt::format("\nrun: {}\n", run);
}

void print_keys(const Context& context) {
  train::Recipe defaults;
  const ConfigReader reader(defaults);
  if (!context.common.json) return context.print(reader.help());
  context.json("hearth.train.keys/1", {{"keys", config_keys(reader)}});
}

void check(const TrainFlags& flags) {
  if (flags.resume.empty() || (flags.output.empty() && !flags.force)) return;
  throw UsageError(
      fmt::format(
          "--resume must not be given with {}: a run goes on where it is",
          flags.force ? "--force" : "--output"
      ),
      "start anew with a recipe, -o and --force, or go on with --resume alone"
  );
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
      "RECIPE", flags.words,
      "Recipe (- reads stdin), then overrides such as optim.lr=3e-4"
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

  if (flags.keys) return print_keys(context);
  check(flags);
  train::Recipe recipe;
  RecipeArguments given{flags.words, flags.output, flags.resume};
  given.threads = flags.print_config;
  const RecipeValues values = read_recipe(given, context, recipe);
  if (!flags.resume.empty()) {
    train::check_resumable(train::run_recipe(flags.resume), recipe);
  }
  if (flags.print_config && context.common.json) {
    return context.json("hearth.train.config/1", {{"values", values.json}});
  }
  if (flags.print_config) return context.print(values.text);
  use_threads(context, recipe);
  ops::use_device(context.common.device);

  const std::string dir = recipe.run.dir;
  const auto mode = !flags.resume.empty() ? train::RunMode::resume
                    : flags.force         ? train::RunMode::overwrite
                                          : train::RunMode::fresh;
  const train::TrainResult result = train_run(context, recipe, mode);

  if (context.common.json) {
    return context.json("hearth.train/1", result_json(result, dir));
  }
  context.print(result_text(result, dir, recipe.objective()));
}

}  // namespace hearth::cli
