// hearth train.
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/units.h"
#include "hearth/cli/command.h"
#include "hearth/cli/read_recipe.h"
#include "hearth/cli/train_run.h"
#include "hearth/ops/device.h"

namespace hearth::cli {
namespace {

struct TrainFlags {
  std::vector<std::string> words;
  std::string output, resume;
  bool print_config = false, force = false, keys = false;
};

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

  const std::string dir = recipe.run.dir;
  const auto mode = !flags.resume.empty() ? train::RunMode::resume
                    : flags.force         ? train::RunMode::overwrite
                                          : train::RunMode::fresh;
  const train::TrainResult result = train_run(context, recipe, mode);

  if (context.common.json) {
    return context.json("hearth.train/1", result_json(result, dir));
  }
  context.print(result_text(result, dir));
}

}  // namespace hearth::cli
