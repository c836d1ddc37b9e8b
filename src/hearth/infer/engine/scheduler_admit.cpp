// Which request runs next, which kept prefix it begins with, and which pages
// are given up for it.
#include <algorithm>

#include "hearth/base/error.h"
#include "hearth/infer/engine/scheduler.h"

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
  if (!options_.prefix_cache || job.feeds_all()) return out;
  // The last token is fed in any case, for its logits.
  const auto wanted = std::span(job.tokens()).first(job.tokens().size() - 1);
  out.match = cache_.find(wanted, job.prefix_group());
  int soon = out.match.tokens;
  for (const JobPtr& other : running_) {
    if (other->prefix_group() != job.prefix_group()) continue;
    const int common = common_prefix(other->tokens(), wanted);
    const int held = std::min(common, runner_.length(other->sequence));
    if (held > out.match.tokens) out.match = {other->sequence, held};
    // The end of its prompt may wait for long, and nobody with it.
    if (other->ready()) soon = std::max(soon, common);
  }
  out.wait = soon >= out.match.tokens + kWorthWaiting;
  if (out.match.tokens < kLeastShared) out.match = {};
  return out;
}

// What a file has more of than memory becomes a sequence that is kept.
void Scheduler::bring_from_disk(const Job& job, PrefixCache::Match& match) {
  if (!store_ || job.feeds_all()) return;
  const auto wanted = std::span(job.tokens()).first(job.tokens().size() - 1);
  const PrefixGroup group = job.prefix_group();
  const int there = store_->find(wanted, group);
  if (there < match.tokens + kLeastShared) return;
  const int pages = there / runner_.pool().page_tokens;
  if (!make_room(pages + pages_committed(), match.sequence)) return;
  const SequenceId sequence = store_->read(wanted, there, group);
  if (sequence < 0) return;
  cache_.keep(sequence, wanted.first(static_cast<std::size_t>(there)), group);
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

Scheduler::Admitted Scheduler::admit_first() {
  Job& job = *waiting_.front();
  Beginning from = beginning_of(job);
  if (from.wait) return Admitted::waits_for_beginning;
  bring_from_disk(job, from.match);
  const int page = runner_.pool().page_tokens;
  const int all = ceil_div(std::min(job.length() + 1, limit_), page);
  const int committed = pages_committed();
  const auto need = [&] { return all - from.match.tokens / page + committed; };
  if (!make_room(need(), from.match.sequence)) {
    if (!running_.empty()) return Admitted::no_pages;
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
  admitted_.take(asker_of(job.request()));
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return Admitted::yes;
}

Scheduler::Lines Scheduler::lines() const {
  Lines out;
  for (const JobPtr& job : running_) {
    Line& line = out[asker_of(job->request())];
    ++line.running;
    if (makes_tokens(*job)) continue;
    line.readable += readable(*job);
    line.shortest = std::min(line.shortest, pending(*job));
  }
  return out;
}

// Of the asker that has least running, and of those the one whose last turn is
// longest ago: whoever asks for much waits behind itself. Of one asker, as they
// came; but while its prompts that run fill a step, only one that is shorter
// would be read, and the others take no place and no pages.
bool Scheduler::choose_next(const std::set<Asker>& passed_over) {
  using Rank = std::pair<std::size_t, std::uint64_t>;
  const Lines lines = this->lines();
  auto next = waiting_.end();
  Rank least;
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    const Asker asker = asker_of((*at)->request());
    if (passed_over.contains(asker)) continue;
    const auto found = lines.find(asker);
    const Line line = found == lines.end() ? Line{} : found->second;
    const bool full = line.readable >= prefill_chunk();
    if (full && (*at)->length() >= line.shortest) continue;
    const Rank rank{line.running, admitted_.of(asker).last};
    if (next != waiting_.end() && rank >= least) continue;
    next = at;
    least = rank;
  }
  if (next == waiting_.end()) return false;
  std::rotate(waiting_.begin(), next, next + 1);
  return true;
}

void Scheduler::admit() {
  // Their next prompt begins like one that is being read. Others may go.
  std::set<Asker> passed_over;
  while (running_.size() < most_running_ && choose_next(passed_over)) {
    try {
      const Admitted admitted = admit_first();
      if (admitted == Admitted::no_pages) return;
      if (admitted == Admitted::yes) continue;
      passed_over.insert(asker_of(waiting_.front()->request()));
    } catch (const std::exception& e) {
      ++counts_.failed;
      waiting_.front()->fail(e);
      waiting_.pop_front();
    }
  }
}

}  // namespace hearth::infer
