// What every command shares: its output, its notes, its parsed words.
#include <cstdio>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/progress.h"
#include "hearth/base/terminal.h"
#include "hearth/base/thread_pool.h"
#include "hearth/cli/command.h"
#include "hearth/cli/model/hub_model.h"
#include "hearth/hardware/machine.h"

namespace hearth::cli {
namespace {

void write_stderr(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void install_sinks(const CommonFlags& flags) {
  set_log_sink([quiet = flags.quiet, verbose = flags.verbose](const auto& r) {
    if (r.level == LogLevel::kWarning) {
      write_stderr(fmt::format("warning: {}\n", r.text));
    } else if (!quiet && (verbose || r.level == LogLevel::kInfo)) {
      write_stderr(r.text + "\n");
    }
  });
  const auto style = flags.quiet            ? ProgressStyle::kSilent
                     : stderr_is_terminal() ? ProgressStyle::kBar
                                            : ProgressStyle::kLines;
  Progress::configure(style, write_stderr);
}

}  // namespace

void check_arrived(bool arrived) {
  if (arrived) return;
  // The command's work is done: running it again for the lost output may do
  // that work twice.
  throw IoError(IoError::from_errno("write to", "standard output").what());
}

void Context::print(std::string_view text) const {
  // A result that does not arrive is an error now: the flush at the end would
  // find an empty buffer and say nothing.
  check_arrived(
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size()
  );
}

void Context::json(std::string_view schema, Json document) const {
  Json all;
  all["schema"] = schema;
  for (auto& [key, value] : document.items()) all[key] = std::move(value);
  has_document_ = true;
  print(to_json_text(all) + "\n");
  check_arrived(std::fflush(stdout) == 0);
}

void Context::note(std::string_view text) const {
  if (!common.quiet) write_stderr(std::string(text) + "\n");
}

bool Context::parse(Args& args, const std::vector<std::string>& words) {
  if (!args.parse(words)) return false;
  install_sinks(common);
  set_shared_threads(
      common.threads > 0 ? common.threads : hardware::usable_threads()
  );
  for (std::string* model : args.models()) {
    check_model_path(*model);
    *model = resolve_model(*this, *model);
  }
  return true;
}

}  // namespace hearth::cli
