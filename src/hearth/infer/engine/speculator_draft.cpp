// Guesses of coming tokens by a smaller model.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/infer/engine/prefix_cache.h"
#include "hearth/infer/engine/speculator.h"

namespace hearth::infer {
namespace {

constexpr std::size_t kPromptChunk = 512;

}  // namespace

DraftSpeculator::DraftSpeculator(std::unique_ptr<Runner> runner)
    : runner_(std::move(runner)) {
  if (!runner_) throw UsageError("[infer.DraftSpeculator] there is no runner");
}

// The request's sequence, cut back to what is still true of its text; null
// where the draft's context has no room for it, or its vocabulary, which may be
// padded less than the model's, not all of its tokens.
DraftSpeculator::Held* DraftSpeculator::prepare(const Ask& ask) {
  const auto all = static_cast<int>(ask.tokens.size());
  if (ask.most < 1 || all + ask.most > runner_->context()) return nullptr;
  const auto known = [&](std::int32_t id) {
    return id < runner_->vocabulary();
  };
  if (!std::ranges::all_of(ask.tokens, known)) return nullptr;
  auto at = held_.find(ask.request);
  if (at == held_.end()) {
    at = held_.emplace(ask.request, Held{runner_->open(), {}}).first;
  }
  Held& held = at->second;
  // The last token is fed in any case, for its logits.
  const int same = std::min(common_prefix(held.fed, ask.tokens), all - 1);
  if (same < static_cast<int>(held.fed.size())) {
    runner_->truncate(held.sequence, same);
    held.fed.resize(static_cast<std::size_t>(same));
  }
  return &held;
}

bool DraftSpeculator::room_for(const std::vector<Guessing>& guessing) const {
  int pages = 0;
  for (const Guessing& t : guessing) {
    const auto more = t.text.size() - t.held->fed.size() +
                      static_cast<std::size_t>(t.ask->most);
    pages += runner_->pages_for(t.held->sequence, static_cast<int>(more));
  }
  return pages <= runner_->pool().free_pages;
}

void DraftSpeculator::feed_prompt(
    Held& held,
    std::span<const std::int32_t> tokens
) {
  while (tokens.size() - held.fed.size() > kPromptChunk) {
    const auto ids = tokens.subspan(held.fed.size(), kPromptChunk);
    const RunnerPart part{held.sequence, ids, LogitsOf::none};
    runner_->step({&part, 1});
    held.fed.insert(held.fed.end(), ids.begin(), ids.end());
  }
}

// One more guess for each.
void DraftSpeculator::round(std::vector<Guessing>& guessing) {
  std::vector<RunnerPart> parts;
  for (const Guessing& t : guessing) {
    const auto ids = std::span(t.text).subspan(t.held->fed.size());
    parts.push_back({t.held->sequence, ids, LogitsOf::last});
  }
  auto rows = runner_->step(parts);
  const auto width = static_cast<std::size_t>(runner_->vocabulary());
  for (Guessing& t : guessing) {
    t.held->fed = t.text;
    const std::int32_t id = t.ask->sampler->pick(
        rows.first(width), t.text, t.text.size(), t.ask->prompt
    );
    rows = rows.subspan(width);
    t.ask->guesses.push_back(id);
    t.text.push_back(id);
  }
  std::erase_if(guessing, [](const Guessing& t) {
    return static_cast<int>(t.ask->guesses.size()) >= t.ask->most;
  });
}

void DraftSpeculator::guess(std::span<Ask> asks) {
  std::vector<Guessing> guessing;
  for (Ask& ask : asks) {
    Held* held = prepare(ask);
    if (held == nullptr) continue;
    guessing.push_back({&ask, held, {ask.tokens.begin(), ask.tokens.end()}});
    // What does not fit goes without guesses, and gives its pages back.
    if (room_for(guessing)) continue;
    guessing.pop_back();
    forget(ask.request);
  }
  for (const Guessing& t : guessing) feed_prompt(*t.held, t.text);
  while (!guessing.empty()) round(guessing);
}

void DraftSpeculator::forget(std::uint64_t request) {
  const auto at = held_.find(request);
  if (at == held_.end()) return;
  runner_->close(at->second.sequence);
  held_.erase(at);
}

}  // namespace hearth::infer
