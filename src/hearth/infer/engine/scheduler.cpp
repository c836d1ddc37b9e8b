#include "hearth/infer/engine/scheduler.h"

#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/profile/zone.h"

namespace hearth::infer {
namespace {

// Rows of a whole vocabulary are large where each prompt token has one.
constexpr int kScoredChunk = 64;

}  // namespace

Scheduler::Scheduler(
    Runner& runner,
    const EngineOptions& options,
    std::unique_ptr<Speculator> speculator,
    text::GrammarPool* grammars
)
    : runner_(runner),
      options_(options),
      cache_(runner),
      speculator_(std::move(speculator)),
      grammars_(grammars),
      batch_(static_cast<std::size_t>(std::max(options.max_batch, 1))),
      most_running_(batch_),
      batch_guessed_(
          static_cast<std::size_t>(std::max(options.draft_batch, 0))
      ) {
  const KvPool pool = runner_.pool();
  const auto tokens = static_cast<std::int64_t>(pool.pages) * pool.page_tokens;
  limit_ = static_cast<int>(std::min<std::int64_t>(
      runner_.context(), std::max<std::int64_t>(tokens, 0)
  ));
  if (options.prefix_cache && !options.prefix_folder.empty()) {
    store_ = std::make_unique<PrefixStore>(
        runner, options.prefix_folder, options.prefix_bytes
    );
  }
}

Scheduler::~Scheduler() {
  for (JobPtr& job : running_) job->end(Finish::cancelled);
  for (JobPtr& job : waiting_) job->end(Finish::cancelled);
  for (JobPtr& job : held_) job->end(Finish::cancelled);
}

bool Scheduler::guarded(Job& job, FunctionRef<void()> work) {
  try {
    work();
    return true;
  } catch (const UsageError& e) {
    ++counts_.failed;
    job.fail(e, true);
  } catch (const std::exception& e) {
    ++counts_.failed;
    job.fail(e);
  }
  return false;
}

void Scheduler::add(JobPtr job) {
  ++counts_.requests;
  stalled_ = false;
  if (!guarded(*job, [&] { job->begin(grammars_); })) return;
  waiting_.push_back(std::move(job));
}

void Scheduler::cancel(RequestId id) {
  stalled_ = false;
  const auto is_it = [&](const JobPtr& job) { return job->id() == id; };
  const auto at = std::ranges::find_if(waiting_, is_it);
  if (at != waiting_.end()) {
    (*at)->end(Finish::cancelled);
    waiting_.erase(at);
    return;
  }
  for (const JobPtr& job : running_) {
    if (is_it(job)) job->end(Finish::cancelled);
  }
  const auto held = std::ranges::find_if(held_, is_it);
  if (held != held_.end()) {
    (*held)->end(Finish::cancelled);
    put_away(**held);
    held_.erase(held);
  }
  retire();
}

void Scheduler::hold(RequestId id) {
  stalled_ = false;
  land();
  const auto move_from = [&](auto& jobs) {
    const auto at = std::ranges::find_if(jobs, [&](const JobPtr& job) {
      return job->id() == id;
    });
    if (at == jobs.end()) return;
    held_.push_back(std::move(*at));
    jobs.erase(at);
  };
  move_from(waiting_);
  move_from(running_);
}

void Scheduler::go_on(RequestId id) {
  stalled_ = false;
  const auto at = std::ranges::find_if(held_, [&](const JobPtr& job) {
    return job->id() == id;
  });
  if (at == held_.end()) return;
  JobPtr job = std::move(*at);
  held_.erase(at);
  job->waits_since = std::chrono::steady_clock::now();
  if (running_.size() >= most_running_) put_away(*job);
  if (job->sequence >= 0) {
    running_.push_back(std::move(job));
  } else {
    waiting_.push_front(std::move(job));
  }
}

void Scheduler::set_max_batch(int sequences) {
  const auto batch = static_cast<std::size_t>(std::max(sequences, 1));
  if (batch == batch_) return;
  batch_ = most_running_ = batch;
  stalled_ = false;
}

EngineStats Scheduler::stats() const {
  EngineStats out = counts_;
  out.waiting = waiting_.size();
  out.running = running_.size();
  out.held = held_.size();
  out.pool = runner_.pool();
  std::vector<SequenceId> used;
  for (const auto* jobs : {&running_, &held_}) {
    for (const JobPtr& job : *jobs) {
      if (job->sequence >= 0) used.push_back(job->sequence);
    }
  }
  out.pages_in_use = runner_.pages_held(used);
  const auto look = [&](const JobPtr& job) {
    out.waits_since =
        std::min(job->waits_since, out.waits_since.value_or(job->waits_since));
  };
  std::ranges::for_each(waiting_, look);
  std::ranges::for_each(running_, look);
  return out;
}

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
  const auto now = std::chrono::steady_clock::now();
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

void Scheduler::fail(
    const std::vector<Feed>& feeds,
    const std::exception& why
) {
  // What a runner holds after an error nobody knows.
  cache_.clear();
  while (close_a_held_one()) continue;
  std::vector<Job*> jobs;
  for (const Feed& f : feeds) jobs.push_back(f.job);
  for (const auto& flight : flights_) {
    jobs.insert(jobs.end(), flight.begin(), flight.end());
  }
  for (Job* job : jobs) {
    if (job == nullptr || job->ended()) continue;
    ++counts_.failed;
    job->fail(why);
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
        fail(feeds, e);
      }
    }
  } catch (const std::exception& e) {
    fail(feeds, e);
  }
  retire();
}

void Scheduler::close(Job& job) {
  leave_flights(job);
  if (speculator_) speculator_->forget(job.id());
  if (job.sequence < 0) return;
  runner_.close(job.sequence);
  job.sequence = -1;
}

// Into the cache, where that is worth it.
void Scheduler::put_away(Job& job) {
  leave_flights(job);
  if (speculator_) speculator_->forget(job.id());
  if (job.sequence < 0) return;
  const int held = runner_.length(job.sequence);
  if (options_.prefix_cache && held >= kLeastShared) {
    const auto tokens =
        std::span(job.tokens()).first(static_cast<std::size_t>(held));
    const PrefixGroup group = job.prefix_group();
    if (store_) store_->write(job.sequence, tokens, group);
    cache_.keep(job.sequence, tokens, group);
    job.sequence = -1;
  } else {
    close(job);
  }
  job.start_over();
}

void Scheduler::retire() {
  std::erase_if(running_, [&](const JobPtr& job) {
    if (!job->ended()) return false;
    most_running_ = batch_;
    // A text that was pooled into a vector is not continued, so its pages are
    // not kept.
    if (job->request().pooling) {
      close(*job);
    } else {
      put_away(*job);
    }
    return true;
  });
}

}  // namespace hearth::infer
