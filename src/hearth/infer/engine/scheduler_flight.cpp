// Steps that are sent before the tokens of the last are known: the runner
// chooses them, and while it computes, the host tells of those before.
#include <algorithm>

#include "hearth/infer/engine/scheduler.h"

namespace hearth::infer {

// Many sequences fill a step by themselves; then guesses would only make it
// longer.
bool Scheduler::guesses() const {
  return speculator_ && running_.size() <= batch_guessed_;
}

bool Scheduler::may_fly(const Job& job, std::optional<int>& adapter) const {
  if (!runner_.chooses() || guesses() || !job.draw(0)) return false;
  const int own = job.request().adapter;
  if (!adapter) adapter = own;
  return adapter == own;
}

// One that flies has a token to come, which may be its last by what was asked.
bool Scheduler::may_go_on(const Job& job) const {
  return job.made() + 1 < job.request().max_tokens && job.length() + 1 < limit_;
}

int Scheduler::pages_needed(const std::vector<Feed>& feeds) const {
  int pages = 0;
  for (const Feed& f : feeds) {
    pages += runner_.pages_for(
        f.job->sequence, f.tokens + static_cast<int>(f.guesses.size())
    );
  }
  return pages;
}

void Scheduler::fly(const std::vector<Feed>& feeds) {
  std::vector<DrawnRow> rows;
  std::vector<Job*> jobs;
  for (const Feed& f : feeds) {
    if (!f.flies) continue;
    Job& job = *f.job;
    DrawnRow row{job.sequence, {}, *job.draw(job.flying ? 1 : 0)};
    if (!job.flying) row.id = job.tokens().back();
    rows.push_back(row);
    jobs.push_back(&job);
  }
  const bool before = !flights_.empty();
  if (!rows.empty()) {
    runner_.send(rows);
    flights_.push_back(std::move(jobs));
  }
  if (before) receive();
  for (const auto& flight : flights_) {
    for (Job* job : flight) {
      if (job != nullptr) job->flying = true;
    }
  }
}

void Scheduler::receive() {
  const auto jobs = std::move(flights_.front());
  flights_.pop_front();
  std::vector<std::int32_t> tokens;
  try {
    tokens = runner_.receive();
  } catch (const std::exception& e) {
    return fail(e);
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i] == nullptr) continue;
    Job& job = *jobs[i];
    job.flying = false;
    ++counts_.made_tokens;
    guarded(job, [&] { job.take(tokens[i], limit_); });
    if (job.ended()) leave_flights(job);
  }
}

void Scheduler::land() {
  while (!flights_.empty()) receive();
  retire();
}

void Scheduler::leave_flights(Job& job) {
  job.flying = false;
  for (auto& flight : flights_) {
    std::ranges::replace(flight, &job, nullptr);
  }
}

}  // namespace hearth::infer
