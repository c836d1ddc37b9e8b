// hearth tune RECIPE -o BEST.yaml
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/bench/measure.h"
#include "hearth/cli/command.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/measure/doctor_report.h"
#include "hearth/cli/train/read_recipe.h"
#include "hearth/cli/train/tune_run.h"
#include "hearth/ops/device.h"
#include "hearth/train/plan/presets.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

struct TuneFlags {
  std::vector<std::string> words;
  std::string output, preset, against, over;
  TuneLimits limits;
  bool force = false, no_compare = false;
};

void declare(Args& args, TuneFlags& flags) {
  args.rest("RECIPE", flags.words, "Recipe, then overrides");
  args.option(
      "-o,--output", flags.output, "Write the best recipe here (-: stdout)"
  );
  args.option(
      "--preset", flags.preset,
      "Choose the model's size for this machine first: conservative, balanced "
      "or aggressive"
  );
  args.option(
      "--against", flags.against,
      "Another recipe to compare with, in place of the basic settings"
  );
  args.option(
      "--over", flags.over,
      "What is searched: batch,checkpointing,precision,threads or some of them"
  );
  args.option(
      "--seconds", flags.limits.seconds,
      "No new measurement starts after so long"
  );
  args.flag("--no-compare", flags.no_compare, "Search alone, no before/after");
  args.flag("--force", flags.force, "Write over a recipe that is there");
  args.example(
      "hearth tune recipe.yaml -o best.yaml", "the fastest settings here"
  );
  args.example(
      "hearth tune recipes/quickstart.yaml --preset balanced -o mine.yaml",
      "a model for this machine's memory and speed, tuned"
  );
  args.example(
      "hearth tune recipes/s1-balanced.yaml --against recipes/s1-original.yaml",
      "one recipe against another, at equal and at best batches"
  );
}

void check(const TuneFlags& flags, const Context& context) {
  if (flags.output == "-" && context.common.json) {
    throw UsageError(
        "-o - must not be given with --json: both write to stdout"
    );
  }
  if (!(flags.limits.seconds > 0)) {
    throw UsageError("--seconds must be above 0");
  }
  if (!flags.output.empty() && flags.output != "-" &&
      fs::exists(flags.output) && !flags.force) {
    throw UsageError(
        fmt::format("{} is there already", flags.output),
        "--force writes over it"
    );
  }
  const fs::path folder = fs::path(flags.output).parent_path();
  if (!folder.empty() && !fs::is_directory(folder)) {
    throw UsageError(
        fmt::format("the folder of {} must be there to write to", flags.output)
    );
  }
  if (!flags.preset.empty()) train::preset_named(flags.preset);
}

std::vector<std::string> split(const std::string& words) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < words.size()) {
    const std::size_t end = std::min(words.find(',', begin), words.size());
    parts.push_back(words.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Measures the machine's peaks if that was not done yet: a preset chooses the
// model's size by them.
void ensure_peaks(const Context& context) {
  const DoctorReport report = gather_report(context.common.device);
  if (report.peaks && !report.peaks->training.empty()) return;
  context.note("measuring this machine first, as hearth doctor --measure does");
  hardware::store_peaks(bench::measure_peaks(report.machine));
}

// The file, beside the recipe, of all measurements it was chosen from.
std::string table_path(const std::string& output) {
  return fs::path(output).replace_extension(".tune.json").string();
}

std::string recipe_text(
    const TuneFlags& flags,
    const TuneRun& run,
    const DoctorReport& machine
) {
  std::string command = "hearth tune";
  for (const auto& w : flags.words) command += " " + w;
  if (!flags.preset.empty()) command += " --preset " + flags.preset;
  return recipe_header(
             run.report(), command, bench::machine_id(machine.machine)
         ) +
         recipe_yaml(run.best_recipe());
}

void write_results(
    const TuneFlags& flags,
    const TuneRun& run,
    const DoctorReport& machine
) {
  if (flags.output.empty() || flags.output == "-") return;
  if (!run.report().search.best) return;
  write_file_atomically(flags.output, recipe_text(flags, run, machine));
  Json table = to_json(run.report());
  table["machine"] = to_json(machine);
  write_file_atomically(table_path(flags.output), to_json_text(table) + "\n");
}

// Prints the result, or why there is none.
void tell(
    const TuneFlags& flags,
    const TuneRun& run,
    const DoctorReport& machine,
    const Context& context
) {
  const bool to_stdout = flags.output == "-";
  const bool cut_short = InterruptGuard::interrupted();
  if (to_stdout) {
    context.note(tune_text(run.report()));
  } else if (!context.common.json) {
    context.print(tune_text(run.report()));
  }
  if (cut_short) {
    throw Interrupted(
        fmt::format(
            "interrupted after {} settings", run.report().search.rows.size()
        ),
        flags.output.empty() || to_stdout || !run.report().search.best
            ? ""
            : "the table so far: " + table_path(flags.output)
    );
  }
  if (!run.report().search.best) {
    throw Error(
        "no setting could be measured",
        "hearth plan says what the recipe would take"
    );
  }
  if (to_stdout) context.print(recipe_text(flags, run, machine));
  if (!context.common.json) return;
  Json document = to_json(run.report());
  document["machine"] = to_json(machine);
  context.json("hearth.tune/1", document);
}

}  // namespace

void cmd_tune(Context& context, const std::vector<std::string>& words) {
  TuneFlags flags;
  Args args(
      "tune",
      "Measure how a recipe's step runs fastest on this machine: rows of a "
      "micro-batch, checkpointing, precision, threads. The update stays the "
      "same; the fastest settings are written as a recipe.",
      context.common
  );
  declare(args, flags);
  if (!context.parse(args, words)) return;

  check(flags, context);
  flags.limits.table_on_stderr = flags.output == "-";
  flags.limits.over = split(flags.over);
  check(flags.limits);
  train::Recipe recipe;
  read_recipe({flags.words, "", ""}, context, recipe);
  std::optional<train::Recipe> against;
  if (!flags.against.empty()) {
    read_recipe({{flags.against}, "", ""}, context, against.emplace());
  }
  if (!flags.limits.over.empty() &&
      std::ranges::find(flags.limits.over, "threads") ==
          flags.limits.over.end()) {
    use_threads(context, recipe);
  }
  ops::use_device(context.common.device);
  if (!flags.preset.empty()) {
    train::check_sizable(recipe);
    ensure_peaks(context);
  }
  const InterruptGuard guard(
      context.common.quiet
          ? nullptr
          : "\ninterrupted: ends after what is being measured (again: at "
            "once)\n"
  );
  TuneRun run(context, recipe, flags.limits);
  const DoctorReport machine = gather_report(context.common.device);
  run.on_row = [&] { write_results(flags, run, machine); };
  if (flags.output != "-") run.report().output = flags.output;
  try {
    if (flags.preset.empty()) {
      run.search();
    } else {
      run.search_preset(train::preset_named(flags.preset));
    }
    if (!flags.no_compare) run.compare(against);
  } catch (const Interrupted&) {
    // What has been measured until then is reported below.
  }
  run.report().interrupted = InterruptGuard::interrupted();
  write_results(flags, run, machine);
  tell(flags, run, machine, context);
}

}  // namespace hearth::cli
