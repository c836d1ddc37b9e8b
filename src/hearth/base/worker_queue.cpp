#include "hearth/base/worker_queue.h"

#include <algorithm>
#include <iterator>

namespace hearth {
namespace {

std::size_t share_of(int threads, WorkerQueue::Sharing sharing) {
  const auto all = static_cast<std::size_t>(std::max(threads, 1));
  return sharing == WorkerQueue::Sharing::leave_one && all > 1 ? all - 1 : all;
}

}  // namespace

WorkerQueue::WorkerQueue(int threads, Sharing sharing)
    : most_of_one_(share_of(threads, sharing)) {
  try {
    for (int i = 0; i < threads; ++i) {
      Worker& worker = workers_.emplace_back();
      worker.thread = std::thread([this, &worker] { work(worker); });
    }
  } catch (...) {
    // The system refused a thread. Those that run must end before they are
    // destroyed: a thread nobody has joined would end the process.
    end();
    throw;
  }
}

WorkerQueue::~WorkerQueue() {
  end();
}

void WorkerQueue::end() {
  // Dropped after the lock: what a job holds may do anything when it goes.
  std::vector<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (auto& [name, owner] : owners_) {
      std::ranges::move(owner.jobs, std::back_inserter(dropped));
      owner.jobs.clear();
    }
  }
  ready_.notify_all();
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
  }
}

void WorkerQueue::push(const std::string& owner, std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (ending_) return;
    owners_[owner].jobs.push_back({std::move(job), Clock::now()});
  }
  ready_.notify_one();
}

std::map<std::string, WorkerQueue::Owner>::iterator WorkerQueue::next() {
  // Behind the last one, and round.
  auto at = owners_.upper_bound(last_);
  for (std::size_t i = 0; i < owners_.size(); ++i, ++at) {
    if (at == owners_.end()) at = owners_.begin();
    const Owner& owner = at->second;
    if (!owner.jobs.empty() && owner.running < most_of_one_) return at;
  }
  return owners_.end();
}

void WorkerQueue::work(Worker& self) {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto at = owners_.end();
    ready_.wait(lock, [&] {
      at = next();
      return ending_ || at != owners_.end();
    });
    if (ending_) return;
    last_ = at->first;
    Owner& owner = at->second;
    Job job = std::move(owner.jobs.front());
    owner.jobs.pop_front();
    ++owner.running;
    self.busy = true;
    self.since = Clock::now();
    lock.unlock();
    job.run();
    job.run = nullptr;
    lock.lock();
    self.busy = false;
    --owner.running;
    if (owner.running == 0 && owner.jobs.empty()) owners_.erase(at);
    // The owner of the finished job may have another thread now.
    ready_.notify_one();
  }
}

WorkerQueue::State WorkerQueue::state() const {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto seconds = [&](Clock::time_point since) {
    return std::chrono::duration<double>(now - since).count();
  };
  State out;
  out.threads = workers_.size();
  for (const Worker& worker : workers_) {
    if (!worker.busy) continue;
    ++out.busy;
    out.longest_run = std::max(out.longest_run, seconds(worker.since));
  }
  for (const auto& [name, owner] : owners_) {
    out.waiting += owner.jobs.size();
    if (owner.jobs.empty()) continue;
    out.longest_wait =
        std::max(out.longest_wait, seconds(owner.jobs.front().since));
  }
  return out;
}

}  // namespace hearth
