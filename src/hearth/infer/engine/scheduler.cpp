#include "hearth/infer/engine/scheduler.h"

#include <algorithm>

#include "hearth/base/error.h"

namespace hearth::infer {

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
  job->waits_since = Clock::now();
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
