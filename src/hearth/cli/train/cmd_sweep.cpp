// hearth sweep SWEEP.yaml -o DIR
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/shell_word.h"
#include "hearth/base/units.h"
#include "hearth/cli/command.h"
#include "hearth/cli/inputs.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/train/plan_recipe.h"
#include "hearth/cli/train/read_recipe.h"
#include "hearth/cli/train/train_run.h"
#include "hearth/ops/device.h"
#include "hearth/train/loop/folder_lock.h"
#include "hearth/train/loop/run_model.h"
#include "hearth/train/loop/sweep.h"
#include "hearth/train/recipe/recipe_changes.h"
#include "hearth/train/recipe/recipe_paths.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;
using train::SweepResult;
using train::SweepRun;

constexpr const char* kResult = "sweep_result.json";

struct Sweep {
  std::string file;
  std::string base;  // the recipe's path
  std::vector<SweepRun> runs;
};

// Reads the sweep. The path of its base recipe is relative to the sweep's file
// where that exists, else to the working directory.
Sweep read_sweep(const std::string& file) {
  train::SweepConfig config;
  ConfigReader(config).apply(read_yaml(file, "sweep"));
  if (config.base.empty()) {
    throw UsageError(file + ": base must name the recipe the runs share");
  }
  Sweep sweep{file, config.base, train::expand(config)};
  const fs::path beside = fs::path(file).parent_path() / config.base;
  if (fs::exists(beside)) sweep.base = beside.string();
  return sweep;
}

train::Recipe recipe_of(
    const Sweep& sweep,
    const SweepRun& run,
    const std::string& folder,
    const Context& context
) {
  RecipeArguments given;
  given.words.push_back(sweep.base);
  for (const auto& [key, value] : run.values) {
    given.words.push_back(key + "=" + value);
  }
  given.output = (fs::path(folder) / run.name).string();
  given.origin = sweep.file;
  train::Recipe recipe;
  read_recipe(given, context, recipe);
  return recipe;
}

[[noreturn]] void refuse_other(
    const std::string& folder,
    const train::RecipeChange& change
) {
  throw UsageError(
      fmt::format(
          "{} holds a run of another recipe: {} is {} there, got {}", folder,
          change.key, change.before, change.now
      ),
      "give another folder with -o, or remove that one"
  );
}

// The result that an earlier sweep has left for the same recipe, or nothing
// where that run is not finished. Throws UsageError when it had another recipe.
std::optional<SweepResult> finished(
    const SweepRun& run,
    const train::Recipe& recipe
) {
  const fs::path folder = recipe.run.dir;
  const std::string file = (folder / kResult).string();
  if (!fs::exists(file)) {
    if (!fs::exists(folder / "config.yaml")) return {};
    for (const auto& c :
         train::recipe_changes(train::run_recipe(folder.string()), recipe)) {
      // The run's folder holds what the planner has chosen for "auto".
      const bool planned =
          (c.key == "train.checkpointing" || c.key == "train.packed") &&
          c.now == "auto";
      if (!planned) refuse_other(folder.string(), c);
    }
    return {};
  }
  const Json row = read_json_file(file);
  train::Recipe before;
  ConfigReader(before).apply(parse_yaml(row.value("recipe", ""), file));
  const auto changes = train::recipe_changes(before, recipe);
  if (!changes.empty()) refuse_other(folder.string(), changes.front());
  auto result = train::result_from(run, row);
  if (!result.score()) return {};
  return result;
}

SweepResult run_one(
    const SweepRun& run,
    const train::Recipe& recipe,
    const Context& context
) {
  SweepResult r{.run = run};
  const double start = seconds_now();
  const bool begun = fs::exists(fs::path(recipe.run.dir) / "config.yaml");
  try {
    const auto result = train_run(
        context, recipe, begun ? train::RunMode::resume : train::RunMode::fresh
    );
    r.valid_loss = result.valid_loss;
    r.train_loss = result.train_loss;
    r.tokens_per_s = result.tokens_per_s;
  } catch (const Interrupted&) {
    throw;
  } catch (const std::exception& e) {
    r.error = e.what();
    context.note(fmt::format("{} failed: {}", run.name, r.error));
    return r;
  }
  r.seconds = seconds_now() - start;
  Json j = train::to_json(std::vector{r})["rows"][0];
  j["recipe"] = recipe_yaml(train::with_absolute_paths(recipe));
  write_file_atomically(
      (fs::path(recipe.run.dir) / kResult).string(), to_json_text(j)
  );
  return r;
}

void write_tables(
    const std::string& folder,
    const std::vector<SweepResult>& results
) {
  const auto write = [&](const char* name, const std::string& text) {
    write_file_atomically((fs::path(folder) / name).string(), text);
  };
  write("sweep.json", to_json_text(train::to_json(results)));
  write("sweep.csv", train::to_csv(results));
  write("sweep.svg", train::to_svg(results));
}

void dry_run(
    const Sweep& sweep,
    const std::string& folder,
    const Context& context
) {
  Json rows = Json::array();
  std::string text;
  double total = 0;
  bool known = true, fits = true;
  for (const SweepRun& run : sweep.runs) {
    const auto recipe = recipe_of(sweep, run, folder, context);
    const auto plan = train::make_plan(
        recipe, train::planned_model(recipe), this_machine(recipe, context)
    );
    known = known && plan.step_seconds && plan.steps > 0;
    if (known) total += *plan.step_seconds * static_cast<double>(plan.steps);
    fits = fits && plan.fits;
    Json row = plan.to_json();
    row["run"] = run.name;
    rows.push_back(std::move(row));
    text += fmt::format(
        "{}  {}{}{}\n", run.name, format_bytes(plan.memory.total()),
        known ? "  about " +
                    format_seconds(
                        *plan.step_seconds * static_cast<double>(plan.steps)
                    )
              : "",
        plan.fits ? "" : "  does not fit"
    );
  }
  if (context.common.json) {
    Json j{{"rows", rows}, {"fits", fits}};
    if (known) j["total_seconds"] = total;
    return context.json("hearth.sweep.plan/1", j);
  }
  text += fmt::format(
      "{} runs, {}\n", sweep.runs.size(),
      known ? "about " + format_seconds(total) + " in all"
            : "time not known: hearth doctor --measure finds this machine's "
              "peak"
  );
  context.print(text);
}

std::vector<SweepResult> run_all(
    const Sweep& sweep,
    const std::string& folder,
    const Context& context
) {
  // All recipes and folders are looked at before the first run, so that a wrong
  // key costs nothing.
  std::vector<train::Recipe> recipes;
  for (const SweepRun& run : sweep.runs) {
    recipes.push_back(recipe_of(sweep, run, folder, context));
    finished(run, recipes.back());
  }
  const auto lock = train::lock_folder(folder, "cli.sweep", "sweeps");
  use_threads(context, recipes.front());
  std::vector<SweepResult> results;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    const SweepRun& run = sweep.runs[i];
    if (InterruptGuard::interrupted()) throw Interrupted("interrupted");
    context.note(
        fmt::format("run {} of {}: {}", i + 1, sweep.runs.size(), run.name)
    );
    auto done = finished(run, recipes[i]);
    results.push_back(done ? *done : run_one(run, recipes[i], context));
    write_tables(folder, results);
  }
  return results;
}

void report(
    const std::vector<SweepResult>& results,
    const std::string& folder,
    const Context& context
) {
  if (context.common.json) {
    context.json("hearth.sweep/1", train::to_json(results));
  } else {
    context.print(
        train::to_text(results) +
        fmt::format("table and plot: {}/sweep.{{json,csv,svg}}\n", folder)
    );
  }
  const auto failed =
      std::ranges::count_if(results, [](const auto& r) { return !r.score(); });
  if (failed == 0) return;
  throw Error(
      fmt::format("{} of {} runs of the sweep failed", failed, results.size()),
      "called again, the sweep tries them again"
  );
}

}  // namespace

void cmd_sweep(Context& context, const std::vector<std::string>& words) {
  std::string file, folder;
  bool dry = false;
  Args args(
      "sweep",
      "Train a grid of runs over any recipe keys. Finished runs are skipped, "
      "an "
      "interrupted one goes on, one that fails does not stop the rest.",
      context.common
  );
  args.positional(
      "SWEEP", file, "YAML with base: RECIPE and grid: {key: [..]}"
  );
  args.option("-o,--output", folder, "Folder of the runs, table and plot");
  args.flag("--dry-run", dry, "Print the runs and the predicted total time");
  args.example(
      "hearth sweep recipes/sweep-alpha.yaml --dry-run", "what would run"
  );
  args.example(
      "hearth sweep recipes/sweep-alpha.yaml -o runs/alpha",
      "run, or go on with, the grid"
  );
  if (!context.parse(args, words)) return;

  const Sweep sweep = read_sweep(file);
  if (folder.empty()) {
    folder = "runs/" + (file == "-" ? "stdin" : fs::path(file).stem().string());
  }
  ops::use_device(context.common.device);
  if (dry) return dry_run(sweep, folder, context);
  fs::create_directories(folder);
  const InterruptGuard guard;
  try {
    report(run_all(sweep, folder, context), folder, context);
  } catch (const Interrupted& e) {
    throw Interrupted(
        e.what(), fmt::format(
                      "hearth sweep {} -o {} goes on", shell_word(file),
                      shell_word(folder)
                  )
    );
  }
}

}  // namespace hearth::cli
