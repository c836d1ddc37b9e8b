// hearth bench: which cases run, and how their rows are shown.
#include <algorithm>
#include <cstdio>
#include <regex>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/bench/cases.h"
#include "hearth/bench/measure.h"
#include "hearth/cli/command.h"
#include "hearth/cli/measure/bench_ablate.h"
#include "hearth/cli/measure/doctor_report.h"
#include "hearth/ops/device.h"

namespace hearth::cli {
namespace {

std::regex compile_filter(const std::string& filter) {
  try {
    return std::regex(filter, std::regex::ECMAScript | std::regex::icase);
  } catch (const std::regex_error& e) {
    throw UsageError(
        fmt::format(
            "--filter must be a regular expression, got '{}': {}", filter,
            e.what()
        )
    );
  }
}

// The cases of the wanted groups whose names the filter finds.
std::vector<bench::BenchCase> select_cases(
    const std::vector<std::string>& groups,
    const std::string& filter,
    const bench::CaseContext& setting
) {
  std::vector<std::string> known;
  for (const auto& g : bench::case_groups()) known.emplace_back(g.name);
  for (const std::string& name : groups) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError(
        fmt::format(
            "a bench group must be one of {}, got '{}'{}",
            fmt::join(known, ", "), name, did_you_mean(name, known)
        )
    );
  }
  if (groups == std::vector<std::string>{"infer"} &&
      bench::infer_cases(setting).empty()) {
    throw UsageError(
        "bench infer must have a model, got none",
        "name one with --model, or run tools/make_bench_gguf.py .deps/bench"
    );
  }
  const std::regex wanted = compile_filter(filter);
  std::vector<bench::BenchCase> chosen;
  for (const auto& g : bench::case_groups()) {
    const bool asked =
        groups.empty() ||
        std::find(groups.begin(), groups.end(), g.name) != groups.end();
    if (!asked) continue;
    for (auto& c : g.cases(setting)) {
      if (std::regex_search(c.name, wanted)) chosen.push_back(std::move(c));
    }
  }
  if (chosen.empty()) {
    throw UsageError(fmt::format("--filter '{}' finds no case", filter));
  }
  return chosen;
}

struct BenchFlags {
  std::vector<std::string> groups, models;
  std::string filter, tokenizer, text;
  std::string variants = "bf16-compile-tuned";
  double seconds = 1.0, limit = 0;
  std::int64_t repeats = 0;
  bool peers = false, list = false, ablate = false;
  AblateFlags ablation;

  void declare(Args& args);
  void check() const;
};

void BenchFlags::declare(Args& args) {
  std::string group_help = "Groups to run (default all): ";
  for (const auto& g : bench::case_groups()) {
    group_help += fmt::format("{} ({}); ", g.name, g.what);
  }
  args.rest("GROUP", groups, group_help);
  args.option("--filter", filter, "Only cases whose name this regex finds");
  args.option("--seconds", seconds, "Measuring time for each case");
  args.option("--repeats", repeats, "So many repeats of each case, no more");
  args.option(
      "--limit", limit,
      "Seconds: a case ends with what it has, and no further one starts"
  );
  args.flag("--peer", peers, "Interleave the rival where it is installed");
  args.option(
      "--peer-variants", variants,
      "For train --peer: which of PyTorch's {fp32,bf16}-{eager,compile}-"
      "{plain,tuned}, a regex; . is all"
  );
  args.flag(
      "--ablate", ablate,
      "For train: switch one technique at a time; time, memory, loss"
  );
  args.option("--recipe", ablation.recipe, "For --ablate: a recipe of yours");
  args.option(
      "--tokens", ablation.tokens, "For --ablate: what each row trains on"
  );
  args.option("--tokenizer", tokenizer, "For the data group: a tokenizer.json");
  args.option("--text", text, "For the data group: the text to tokenise");
  args.option(
      "--model", models,
      "For infer: models in place of those that tools/make_bench_gguf.py wrote"
  );
  args.flag("--list", list, "Only list the cases");
  args.example("hearth bench base", "what the thread pool and memory cost");
  args.example("hearth bench --filter read --json", "one row for a script");
  args.example(
      "hearth bench train --filter b20 --peer --repeats 5",
      "training steps, in turns with PyTorch's"
  );
  args.example("hearth bench train --ablate", "what each technique is worth");
  args.example(
      "hearth bench infer --model model.gguf --peer",
      "prompts and decoding, in turns with llama.cpp"
  );
}

void BenchFlags::check() const {
  if (repeats < 0 || repeats > 10000) {
    throw UsageError(
        fmt::format("--repeats must be 0 to 10000, got {}", repeats)
    );
  }
  if (!(limit >= 0) || !(seconds >= 0)) {
    throw UsageError("--limit and --seconds must not be negative");
  }
  if (ablation.tokens < 1) {
    throw UsageError(
        fmt::format("--tokens must be at least 1, got {}", ablation.tokens)
    );
  }
  if (ablate && groups != std::vector<std::string>{"train"}) {
    throw UsageError(
        "--ablate must be used with the group train",
        "hearth bench train --ablate"
    );
  }
  compile_filter(filter);
}

// The table, line by line as rows come, or with --json the rows.
Json run_cases(
    const Context& context,
    const BenchFlags& flags,
    const std::vector<bench::BenchCase>& cases
) {
  const bool json = context.common.json;
  std::size_t width = 4;
  for (const auto& c : cases) width = std::max(width, c.name.size());
  if (!json) context.print(bench::table_head(width));
  Json rows = Json::array();
  const double start = seconds_now();
  for (const auto& c : cases) {
    const double spent = seconds_now() - start;
    if (flags.limit > 0 && spent > flags.limit) {
      context.note(
          fmt::format("--limit reached: {} and on were not run", c.name)
      );
      break;
    }
    if (json) context.note(fmt::format("{} ...", c.name));
    bench::RunOptions options{.seconds = flags.seconds};
    options.repeats = static_cast<int>(flags.repeats);
    if (flags.limit > 0) options.limit = flags.limit - spent;
    const bench::Row row = bench::run_case(c, options);
    if (!row.peer_missing.empty()) context.note("no peer: " + row.peer_missing);
    if (json) {
      rows.push_back(bench::to_json(row));
    } else {
      context.print(bench::table_line(row, width));
      if (context.common.verbose) context.print(bench::op_lines(row, width));
      std::fflush(stdout);
    }
  }
  return rows;
}

}  // namespace

void cmd_bench(Context& context, const std::vector<std::string>& words) {
  BenchFlags flags;
  Args args(
      "bench", "Measure, with the share of this machine's peak in every row.",
      context.common
  );
  flags.declare(args);
  if (!context.parse(args, words)) return;

  flags.check();
  const DoctorReport machine = gather_report(context.common.device);
  ops::use_device(context.common.device);
  if (flags.ablate) {
    flags.ablation.filter = flags.filter, flags.ablation.limit = flags.limit;
    return bench_ablate(context, flags.ablation);
  }
  const auto& cpu = machine.machine.cpu;
  const auto cases = select_cases(
      flags.groups, flags.filter,
      {.peaks = machine.peaks,
       .with_peers = flags.peers,
       .peer_variants = flags.variants,
       .seed = context.common.seed,
       .last_cache_bytes = std::max(cpu.l3_bytes, cpu.l2_bytes),
       .models = flags.models,
       .tokenizer = flags.tokenizer,
       .text = flags.text}
  );
  if (!machine.peaks) {
    context.note(
        "this machine's peaks are not measured: run hearth doctor --measure to "
        "see the share of peak"
    );
  }
  if (flags.list) {
    for (const auto& c : cases) context.print(c.name + "\n");
    return;
  }
  Json rows = run_cases(context, flags, cases);
  if (!context.common.json) return;
  Json document;
  document["machine"] = to_json(machine);
  document["rows"] = std::move(rows);
  context.json("hearth.bench/1", document);
}

}  // namespace hearth::cli
