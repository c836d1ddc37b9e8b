// Who runs next: what it begins with, and the pages that others give up for it.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/infer/scheduler.h"

namespace hearth::infer {
namespace {

// So many more tokens in common are worth a step of waiting until another
// sequence has them.
constexpr int kWorthWaiting = 8;

int ceil_div(int a, int b) {
  return (a + b - 1) / b;
}

}  // namespace

// What the running sequences will take before each has its next token.
int Scheduler::pages_committed() const {
  int pages = 0;
  for (const JobPtr& job : running_) {
    const int room = limit_ - runner_.length(job->sequence);
    pages +=
        runner_.pages_for(job->sequence, std::min(pending(*job) + 1, room));
  }
  return pages;
}

Scheduler::Beginning Scheduler::beginning_of(const Job& job) {
  Beginning out;
  // Every token of a scored prompt must be fed.
  if (!options_.prefix_cache || job.scored() >= 0) return out;
  // The last token is fed in any case, for its logits.
  const auto wanted = std::span(job.tokens()).first(job.tokens().size() - 1);
  out.match = cache_.find(wanted, job.request().adapter);
  int soon = out.match.tokens;
  for (const JobPtr& other : running_) {
    if (other->request().adapter != job.request().adapter) continue;
    const int common = common_prefix(other->tokens(), wanted);
    const int held = std::min(common, runner_.length(other->sequence));
    if (held > out.match.tokens) out.match = {other->sequence, held};
    soon = std::max(soon, common);
  }
  out.wait = soon >= out.match.tokens + kWorthWaiting;
  if (out.match.tokens < kLeastShared) out.match = {};
  return out;
}

// What a file has more of than memory becomes a sequence that is kept.
void Scheduler::bring_from_disk(const Job& job, PrefixCache::Match& match) {
  if (!store_ || job.scored() >= 0) return;
  const auto wanted = std::span(job.tokens()).first(job.tokens().size() - 1);
  const int adapter = job.request().adapter;
  const int there = store_->find(wanted, adapter);
  if (there < match.tokens + kLeastShared) return;
  const int pages = there / runner_.pool().page_tokens;
  if (!make_room(pages + pages_committed(), match.sequence)) return;
  const SequenceId sequence = store_->read(wanted, there, adapter);
  if (sequence < 0) return;
  cache_.keep(sequence, wanted.first(static_cast<std::size_t>(there)), adapter);
  match = {sequence, there};
}

bool Scheduler::make_room(int pages, SequenceId except) {
  while (runner_.pool().free_pages < pages) {
    if (!cache_.evict(except) && !close_a_held_one()) return false;
  }
  return true;
}

bool Scheduler::close_a_held_one() {
  const auto at = std::ranges::find_if(held_, [](const JobPtr& job) {
    return job->sequence >= 0;
  });
  if (at == held_.end()) return false;
  close(**at);
  (*at)->start_over();
  return true;
}

// A runner may have to copy what it forks, and lack the pages for it.
SequenceId Scheduler::begin(const Job& job, PrefixCache::Match& match) {
  if (match.tokens > 0) {
    try {
      return runner_.fork(match.sequence, match.tokens);
    } catch (const OutOfMemory&) {
      match = {};
    }
  }
  return runner_.open(job.request().adapter);
}

// False when the first of the queue has to wait.
bool Scheduler::admit_first() {
  Job& job = *waiting_.front();
  Beginning from = beginning_of(job);
  if (from.wait) return false;
  bring_from_disk(job, from.match);
  const int page = runner_.pool().page_tokens;
  const int all = ceil_div(std::min(job.length() + 1, limit_), page);
  const int committed = pages_committed();
  const auto need = [&] { return all - from.match.tokens / page + committed; };
  if (!make_room(need(), from.match.sequence)) {
    if (!running_.empty()) return false;
    // Alone it fits once nothing is kept, what it begins with included.
    from.match = {};
    make_room(need(), -1);
  }
  job.sequence = begin(job, from.match);
  if (job.made() == 0) {
    job.cached = from.match.tokens;
    counts_.cached_tokens += static_cast<std::uint64_t>(job.cached);
    counts_.prompt_tokens += static_cast<std::uint64_t>(job.prompt_length());
  }
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return true;
}

void Scheduler::admit() {
  while (!waiting_.empty() && running_.size() < most_running_) {
    try {
      if (!admit_first()) return;
    } catch (const std::exception& e) {
      ++counts_.failed;
      waiting_.front()->fail(e);
      waiting_.pop_front();
    }
  }
}

}  // namespace hearth::infer
