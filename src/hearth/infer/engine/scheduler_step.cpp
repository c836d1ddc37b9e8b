// A step: what is fed runs, and its logits become tokens; what fails ends.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/infer/engine/scheduler.h"
#include "hearth/profile/zone.h"

namespace hearth::infer {

// Each row of logits belongs to the text up to one guess, and counts as long as
// the guesses before it are the tokens that were drawn.
void Scheduler::check_guesses(const Feed& feed, std::span<const float> rows) {
  Job& job = *feed.job;
  const auto width = static_cast<std::size_t>(runner_.vocabulary());
  std::size_t right = 0;
  for (;; ++right) {
    ++counts_.made_tokens;
    if (job.take(rows.subspan(right * width, width), limit_)) break;
    if (right == feed.guesses.size()) break;
    if (job.tokens().back() != feed.guesses[right]) break;
    // What may follow it is looked for elsewhere: the row after it has to wait.
    if (!job.ready()) break;
  }
  counts_.accepted += right;
  runner_.truncate(job.sequence, job.length() - 1);
  const bool all = right == feed.guesses.size();
  job.guesses = all ? std::min(job.guesses + 1, options_.draft_tokens)
                    : static_cast<int>(right) + 1;
}

void Scheduler::choose(const Feed& feed, std::span<const float> rows) {
  Job& job = *feed.job;
  const auto width = static_cast<std::size_t>(runner_.vocabulary());
  if (!feed.guesses.empty()) return check_guesses(feed, rows);
  if (feed.logits == LogitsOf::all) {
    job.score_prompt(rows, runner_.vocabulary());
  }
  if (rows.empty() || pending(job) > 0) return;
  if (job.request().max_tokens == 0) return job.end(Finish::length);
  ++counts_.made_tokens;
  job.take(rows.last(width), limit_);
}

void Scheduler::hand_out(const Feed& feed, std::span<const float> rows) {
  guarded(*feed.job, [&] { choose(feed, rows); });
}

void Scheduler::collect() {
  for (const JobPtr& job : running_) {
    guarded(*job, [&] { job->collect(limit_); });
  }
  retire();
}

bool Scheduler::rests() const {
  const auto back = [](const JobPtr& job) { return job->has_come_back(); };
  return idle() || (stalled_ && std::ranges::none_of(running_, back));
}

void Scheduler::run(const std::vector<Feed>& all) {
  const auto now = Clock::now();
  for (const Feed& f : all) f.job->waits_since = now;
  fly(all);
  std::vector<Feed> feeds;
  std::ranges::copy_if(all, std::back_inserter(feeds), [](const Feed& f) {
    return !f.flies && !f.job->ended();
  });
  ++counts_.steps;
  if (feeds.empty()) return;
  std::vector<RunnerPart> parts;
  // The last token and the guesses after it, where there are some.
  std::vector<std::vector<std::int32_t>> guessed;
  guessed.reserve(feeds.size());
  for (const Feed& f : feeds) {
    const auto& tokens = f.job->tokens();
    const auto fed = static_cast<std::size_t>(runner_.length(f.job->sequence));
    auto ids =
        std::span(tokens).subspan(fed, static_cast<std::size_t>(f.tokens));
    if (!f.guesses.empty()) {
      auto& both = guessed.emplace_back(ids.begin(), ids.end());
      both.insert(both.end(), f.guesses.begin(), f.guesses.end());
      ids = both;
    }
    const bool prompt = fed < f.job->request().prompt.size();
    const bool states = f.job->request().pooling.has_value();
    parts.push_back({f.job->sequence, ids, f.logits, prompt, states});
  }
  auto rows = runner_.step(parts);
  const auto width = static_cast<std::size_t>(runner_.vocabulary());
  auto states = runner_.states();
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    if (parts[i].states) {
      const auto size =
          parts[i].ids.size() * static_cast<std::size_t>(runner_.width());
      feeds[i].job->take_states(states.first(size), runner_.width());
      states = states.subspan(size);
      continue;
    }
    const auto n = parts[i].logits == LogitsOf::none  ? std::size_t{0}
                   : parts[i].logits == LogitsOf::all ? parts[i].ids.size()
                                                      : std::size_t{1};
    hand_out(feeds[i], rows.first(n * width));
    rows = rows.subspan(n * width);
  }
}

// What a runner holds after an error nobody knows, of those that this step did
// not feed as little as of the others. So all that run end, nothing is kept,
// and held ones will begin again from their tokens.
void Scheduler::fail(const std::exception& why) {
  cache_.clear();
  while (close_a_held_one()) continue;
  for (const JobPtr& job : running_) {
    if (!job->ended()) {
      ++counts_.failed;
      job->fail(why);
    }
    close(*job);
  }
}

void Scheduler::step() {
  const profile::Zone zone("infer.step");
  collect();
  admit();
  std::vector<Feed> feeds;
  try {
    if (guesses()) land();
    feeds = plan();
    if (!flights_.empty() && !make_room(pages_needed(feeds), -1)) {
      // Who ends with the tokens under way leaves room.
      land();
      feeds = plan();
    }
    stalled_ = feeds.empty() && flights_.empty() &&
               !std::ranges::all_of(running_, &Job::ready);
    add_guesses(feeds);
    secure_pages(feeds);
    if (!feeds.empty() || !flights_.empty()) run(feeds);
  } catch (const OutOfMemory& e) {
    // Not the pool, which has its pages, but what a step needs beside it.
    if (!cache_.evict() && !close_a_held_one()) {
      if (running_.size() > 1) {
        preempt_last();
        most_running_ = running_.size();
      } else {
        fail(e);
      }
    }
  } catch (const std::exception& e) {
    fail(e);
  }
  retire();
}

}  // namespace hearth::infer
