// hearth pull ORG/NAME[@REV]

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/cli/command.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/model/pull_progress.h"
#include "hearth/hub/cached_model.h"

namespace hearth::cli {
namespace {

struct PullFlags {
  std::string model;
  hub::PullOptions options;
  std::int64_t jobs = 4, retries = 5;
  double wait = 1, timeout = 30;
  bool offline = false, allow_http = false;
};

void declare(Args& args, PullFlags& f) {
  args.positional(
      "REPO", f.model,
      "ORG/NAME, ORG/NAME@REV (branch, tag or commit), or ORG/NAME/FILE.gguf "
      "for one file of it"
  );
  args.option(
      "--include", f.options.selection.include,
      "Fetch the files these globs match instead of the usual ones"
  );
  args.option(
      "--exclude", f.options.selection.exclude,
      "Leave out the files these globs match"
  );
  args.flag("--all", f.options.selection.all, "Fetch every file there is");
  args.flag(
      "--dry-run", f.options.dry_run, "Say what would be fetched, and stop"
  );
  args.flag(
      "--verify", f.options.verify,
      "Read what is here again, against its checksum"
  );
  args.flag("--offline", f.offline, "Only look whether it is in the cache");
  args.option("--jobs", f.jobs, "Files at a time (4)");
  args.option("--retries", f.retries, "Tries after a failure (5)");
  args.option(
      "--retry-wait", f.wait,
      "Seconds before the first of them; doubles each time (1)"
  );
  args.option(
      "--timeout", f.timeout,
      "Seconds without a byte before it counts as one "
      "(30)"
  );
  args.flag(
      "--allow-http", f.allow_http,
      "Take an HF_ENDPOINT that is not encrypted: others can read what comes, "
      "and your token"
  );
  args.example(
      "hearth pull HuggingFaceTB/SmolLM2-135M-Instruct",
      "config, tokenizer and weights into the cache; prints the folder"
  );
  args.example(
      "hearth pull ORG/NAME@v1.0 --dry-run", "what a tag holds, and how large"
  );
  args.example(
      "hearth pull ORG/NAME-GGUF/model-Q4_K_M.gguf", "one of many GGUF files"
  );
  args.example(
      "HF_ENDPOINT=https://hf-mirror.com hearth pull ORG/NAME", "by a mirror"
  );
  args.example(
      "hearth generate hf:ORG/NAME -p 'Hello'",
      "every command that takes a model takes it from the cache"
  );
}

void apply(PullFlags& f) {
  const auto within = [](double v, double low, double high, const char* name) {
    if (v >= low && v <= high) return;
    throw UsageError(
        fmt::format("{} must be from {} to {}, got {}", name, low, high, v)
    );
  };
  within(static_cast<double>(f.jobs), 1, 64, "--jobs");
  within(static_cast<double>(f.retries), 0, 100, "--retries");
  within(f.wait, 0, 600, "--retry-wait");
  within(f.timeout, 0.1, 3600, "--timeout");
  f.options.jobs = static_cast<int>(f.jobs);
  f.options.retry.retries = static_cast<int>(f.retries);
  f.options.retry.first_wait = f.wait;
  f.options.limits.idle_seconds = f.timeout;
  f.options.limits.slow_seconds = 2 * f.timeout;
  auto& selection = f.options.selection;
  if (selection.all && !selection.include.empty()) {
    throw UsageError("--all leaves nothing for --include to add");
  }
}

Json files_json(const hub::Pulled& pulled, bool dry_run) {
  Json list = Json::array();
  for (const auto& file : pulled.files) {
    list.push_back(
        {{"name", file.remote.name},
         {"bytes", *file.remote.size},
         {"checksum", file.remote.oid},
         {"state", file.was_here ? "cached"
                   : dry_run     ? "missing"
                                 : "fetched"},
         {"fetched_bytes", file.fetched}}
    );
  }
  return list;
}

std::string dry_run_text(const hub::Pulled& pulled) {
  std::string out;
  for (const auto& file : pulled.files) {
    out += fmt::format(
        "{:>11}  {:<8}  {}\n", format_bytes(*file.remote.size),
        file.was_here   ? "cached"
        : file.part > 0 ? "in part"
                        : "missing",
        file.remote.name
    );
  }
  return out + fmt::format(
                   "{:>11}  of {} to fetch, into {}\n",
                   format_bytes(pulled.missing), format_bytes(pulled.bytes),
                   pulled.path
               );
}

void report_cached(
    const Context& context,
    const hub::Settings& settings,
    const hub::RepoName& repo
) {
  const auto found = hub::find_cached_model(settings.cache, repo);
  if (!found.whole()) {
    throw UsageError(
        fmt::format(
            "{} is not whole in the cache {}: {} is missing", repo.text(),
            settings.cache, found.missing
        ),
        fmt::format("hearth pull {} without --offline", repo.text())
    );
  }
  if (!context.common.json) return context.print(found.path + "\n");
  context.json(
      "hearth.pull/1", {{"repo", repo.id()},
                        {"revision", repo.revision},
                        {"commit", found.commit},
                        {"path", found.path},
                        {"offline", true}}
  );
}

}  // namespace

void cmd_pull(Context& context, const std::vector<std::string>& words) {
  PullFlags flags;
  Args args(
      "pull",
      "Fetch a model from a Hugging Face hub into the cache that its own tools "
      "share: resumed, verified, several files at a time.",
      context.common
  );
  declare(args, flags);
  if (!context.parse(args, words)) return;

  apply(flags);
  const hub::RepoName repo = hub::parse_hub_reference(flags.model);
  hub::Settings settings = hub::settings_from_environment();
  settings.allow_http = flags.allow_http;
  if (flags.offline || settings.offline) {
    return report_cached(context, settings, repo);
  }
  const InterruptGuard guard;
  PullProgress progress(context, repo.text());
  const double start = seconds_now();
  const hub::Pulled pulled = hub::pull(settings, repo, flags.options, progress);
  progress.done();
  const double took = seconds_now() - start;
  if (context.common.json) {
    return context.json(
        "hearth.pull/1", {{"repo", repo.id()},
                          {"revision", repo.revision},
                          {"commit", pulled.commit},
                          {"path", pulled.path},
                          {"bytes", pulled.bytes},
                          {"missing_bytes", pulled.missing},
                          {"fetched_bytes", pulled.fetched},
                          {"seconds", took},
                          {"dry_run", flags.options.dry_run},
                          {"files", files_json(pulled, flags.options.dry_run)}}
    );
  }
  if (flags.options.dry_run) return context.print(dry_run_text(pulled));
  context.print(pulled.path + "\n");
}

}  // namespace hearth::cli
