#include "hearth/cli/model/load_progress.h"

#include <fmt/format.h>

#include "hearth/base/units.h"

namespace hearth::cli {
namespace {

// Smaller loads are over before a bar could be read.
constexpr std::size_t kShown = std::size_t{512} << 20;

std::string shard_note(const models::LoadStep& step) {
  if (step.shards < 2) return {};
  std::string note = fmt::format("shard {} of {}", step.shard, step.shards);
  const auto& done = *step.done;
  if (done.size() > 1) {
    const models::LoadPart& last = done[done.size() - 2];
    note += fmt::format(
        ", the one before {} in {}", format_bytes(last.bytes),
        format_seconds(last.seconds)
    );
  }
  return note;
}

}  // namespace

void LoadProgress::update(const models::LoadStep& step) {
  if (step.total < kShown) return;
  if (!bar_) bar_.emplace(Progress::Options{"loading", "B", step.total});
  bar_->update(step.bytes, shard_note(step));
  if (step.bytes >= step.total) bar_->finish();
}

}  // namespace hearth::cli
