// What a step feeds: whose prompts are read how far, who gets its next token,
// what is guessed ahead, and whose pages are taken when they run out.
#include <algorithm>

#include "hearth/base/log.h"
#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {
namespace {

// Rows of a whole vocabulary are large where each prompt token has one.
constexpr int kScoredChunk = 64;

}  // namespace

int Scheduler::pending(const Job& job) const {
  return job.length() - runner_.length(job.sequence);
}

bool Scheduler::makes_tokens(const Job& job) const {
  return job.made() > 0 && pending(job) == 1;
}

int Scheduler::readable(const Job& job) const {
  const int most = job.scored() >= 0 ? kScoredChunk : prefill_chunk();
  return std::min(pending(job), most);
}

std::vector<int> Scheduler::read_in_turns() {
  std::vector<UnreadPrompt> prompts;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    const Job& job = *running_[i];
    if (makes_tokens(job)) continue;
    prompts.push_back({asker_of(job.request()), pending(job)});
    places.push_back(i);
  }
  std::vector<int> out(running_.size());
  int chunk = prefill_chunk();
  const Asker* turn = nullptr;
  for (const std::size_t i : reading_order(prompts, read_)) {
    const Job& job = *running_[places[i]];
    const int n = std::min(readable(job), chunk);
    // The end of a prompt, whose logits nobody could use yet, is read in one
    // piece all the same: what the text is must not depend on when.
    if (n == 0 || (n == pending(job) && !job.ready())) continue;
    out[places[i]] = n;
    chunk -= n;
    const Asker& asker = prompts[i].asker;
    if (turn == nullptr || *turn != asker) read_.take(asker);
    turn = &asker;
  }
  return out;
}

// One token for each sequence that is past its prompt and may have its next one
// chosen, and of prompts as many as the chunk has.
std::vector<Scheduler::Feed> Scheduler::plan() {
  const std::vector<int> read = read_in_turns();
  std::vector<Feed> feeds;
  std::optional<int> adapter;
  for (const JobPtr& job : running_) {
    if (job->flying) adapter = job->request().adapter;
  }
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Job& job = *running_[i];
    if (job.flying) {
      if (may_go_on(job)) feeds.push_back({&job, 1, LogitsOf::last, {}, true});
      continue;
    }
    if (makes_tokens(job)) {
      if (!job.ready()) continue;
      const bool flies = may_fly(job, adapter);
      feeds.push_back({&job, 1, LogitsOf::last, {}, flies});
      continue;
    }
    if (read[i] == 0) continue;
    const bool whole = read[i] == pending(job);
    feeds.push_back(
        {&job, read[i],
         job.scored() >= 0                 ? LogitsOf::all
         : whole && !job.request().pooling ? LogitsOf::last
                                           : LogitsOf::none}
    );
  }
  return feeds;
}

// Many sequences fill a step by themselves; then guesses would only make it
// longer.
void Scheduler::add_guesses(std::vector<Feed>& feeds) {
  if (!guesses()) return;
  std::vector<Speculator::Ask> asks;
  std::vector<Feed*> asked;
  for (Feed& f : feeds) {
    Job& job = *f.job;
    if (job.made() == 0 || pending(job) != 1) continue;
    if (job.guesses == 0) job.guesses = options_.draft_tokens;
    const int most = std::min(
        {job.guesses, limit_ - job.length(),
         job.request().max_tokens - job.made() - 1}
    );
    if (most < 1) continue;
    asks.push_back(
        {job.id(), job.tokens(), job.request().prompt.size(), most,
         &job.sampler()}
    );
    asked.push_back(&f);
  }
  if (asks.empty()) return;
  try {
    speculator_->guess(asks);
  } catch (const std::exception& e) {
    // A failing speculator must not end requests that run well without guesses.
    log_warning("nothing is guessed ahead from here on: {}", e.what());
    speculator_.reset();
    return;
  }
  for (std::size_t i = 0; i < asks.size(); ++i) {
    auto& guesses = asks[i].guesses;
    // A draft's vocabulary may be padded further than the model's.
    const auto bad = std::ranges::find_if(guesses, [&](std::int32_t id) {
      return id >= runner_.vocabulary();
    });
    guesses.erase(bad, guesses.end());
    if (guesses.empty()) continue;
    counts_.drafted += guesses.size();
    asked[i]->guesses = std::move(guesses);
    asked[i]->logits = LogitsOf::all;
  }
}

// Takes the pages of the request that was admitted last; it begins again later,
// from all tokens it has by now.
void Scheduler::preempt_last() {
  JobPtr job = std::move(running_.back());
  running_.pop_back();
  close(*job);
  job->start_over();
  ++counts_.preempted;
  waiting_.push_front(std::move(job));
}

void Scheduler::secure_pages(std::vector<Feed>& feeds) {
  const auto need = [&] { return pages_needed(feeds); };
  if (make_room(need(), -1)) return;
  for (Feed& f : feeds) {
    if (f.guesses.empty()) continue;
    f.guesses.clear();
    f.logits = LogitsOf::last;
  }
  while (!make_room(need(), -1)) {
    if (running_.size() == 1) {
      running_.front()->end(Finish::length);
      feeds.clear();
      return;
    }
    const Job* last = running_.back().get();
    std::erase_if(feeds, [&](const Feed& f) { return f.job == last; });
    preempt_last();
  }
}

}  // namespace hearth::infer
