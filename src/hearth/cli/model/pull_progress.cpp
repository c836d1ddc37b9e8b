#include "hearth/cli/model/pull_progress.h"

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/terminal.h"
#include "hearth/base/units.h"
#include "hearth/cli/interrupt.h"

namespace hearth::cli {
namespace {

// Smaller files go by without a line.
constexpr std::uint64_t kWorthALine = std::uint64_t{16} << 20;

std::uint64_t gained(std::uint64_t first, std::uint64_t there) {
  return there > first ? there - first : 0;
}

}  // namespace

PullProgress::PullProgress(const Context& context, std::string model)
    : context_(context), model_(std::move(model)) {}

void PullProgress::check() {
  if (!InterruptGuard::interrupted()) return;
  throw Interrupted(
      "interrupted: what came so far stays, and the next pull goes on from it"
  );
}

void PullProgress::note(const std::string& text) const {
  // The bar's line is cleared before something else is written there.
  const bool bar = progress_ && stderr_is_terminal();
  context_.note((bar ? "\r\x1b[K" : "") + text);
}

void PullProgress::planned(const hub::Pulled& plan) {
  std::size_t here = 0;
  std::uint64_t parts = 0;
  for (const auto& file : plan.files) {
    here += file.was_here ? 1 : 0;
    parts += file.part;
  }
  std::string text = fmt::format(
      "{} ({}): {} files, {}", model_, plan.commit.substr(0, 12),
      plan.files.size(), format_bytes(plan.bytes)
  );
  if (here == plan.files.size()) {
    text += ", all here";
  } else {
    text += fmt::format("; {} to fetch", format_bytes(plan.missing));
    if (here > 0) text += fmt::format(", {} files are here", here);
    if (parts > 0) {
      text += fmt::format(", {} go on from earlier", format_bytes(parts));
    }
  }
  note(text);
  if (plan.missing == 0) return;
  progress_.emplace(Progress::Options{"pull", "B", plan.missing});
}

std::string PullProgress::active_text() const {
  std::string out;
  std::size_t shown = 0;
  for (const auto& [name, file] : active_) {
    if (++shown > 3) {
      return out + fmt::format(" +{}", active_.size() - 3);
    }
    const double seconds = seconds_now() - file.start;
    const auto came = static_cast<double>(gained(file.first, file.there));
    const double rate = seconds > 0.5 ? came / seconds : 0;
    out += fmt::format(
        "{}{} {:.0f}%", out.empty() ? "" : ", ", name,
        file.size == 0 ? 100.0
                       : 100.0 * static_cast<double>(file.there) /
                             static_cast<double>(file.size)
    );
    if (rate > 0) {
      out += fmt::format(
          " ({}/s, {} left)", format_bytes(static_cast<std::size_t>(rate)),
          format_seconds(static_cast<double>(file.size - file.there) / rate)
      );
    }
  }
  return out;
}

void PullProgress::advanced(const hub::PulledFile& file, std::uint64_t there) {
  const auto [it, fresh] = active_.try_emplace(file.remote.name);
  Active& a = it->second;
  if (fresh) a = {seconds_now(), file.part, there, *file.remote.size};
  a.there = there;
  std::uint64_t sum = finished_;
  for (const auto& [name, one] : active_) sum += gained(one.first, one.there);
  if (progress_) progress_->update(sum, active_text());
}

void PullProgress::finished(const hub::PulledFile& file) {
  active_.erase(file.remote.name);
  finished_ += gained(file.part, *file.remote.size);
  if (*file.remote.size < kWorthALine) return;
  const double rate =
      static_cast<double>(file.fetched) / (file.seconds > 0 ? file.seconds : 1);
  note(
      fmt::format(
          "  {}: {} in {}, {}/s", file.remote.name,
          format_bytes(*file.remote.size), format_seconds(file.seconds),
          format_bytes(static_cast<std::size_t>(rate))
      )
  );
}

void PullProgress::retrying(const std::string& what, double seconds) {
  note(fmt::format("  {}; trying again in {}", what, format_seconds(seconds)));
}

void PullProgress::waiting(const hub::PulledFile& file) {
  note(
      fmt::format("  {}: another process fetches it; waiting", file.remote.name)
  );
}

void PullProgress::done() {
  if (progress_) progress_->finish();
}

}  // namespace hearth::cli
