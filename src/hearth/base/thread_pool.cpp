#include "hearth/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

// About 50 microseconds of spinning before a worker sleeps: longer than the
// gap between two ops of a step, far shorter than a scheduler tick.
constexpr int kSpins = 4000;

void pause_cpu() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

thread_local const void* current_pool = nullptr;

}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> threads;
  std::mutex callers;  // one job at a time

  // A job is published by raising `epoch`; workers count themselves off in
  // `running`. Everything else is written before the one and read after the
  // other.
  std::atomic<unsigned> epoch{0};
  std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  const FunctionRef<void(int)>* body = nullptr;

  std::mutex sleep_mutex;
  std::condition_variable wake, done;
  std::atomic<int> sleepers{0};

  std::mutex error_mutex;
  std::exception_ptr error;

  void record_error() {
    const std::lock_guard lock(error_mutex);
    if (!error) error = std::current_exception();
  }

  void call(int worker) {
    try {
      (*body)(worker);
    } catch (...) {
      record_error();
    }
  }

  // Waits until epoch differs from seen, which means that there is a job.
  void wait_for_job(unsigned seen) {
    for (int i = 0; i < kSpins; ++i) {
      if (epoch.load(std::memory_order_acquire) != seen) return;
      pause_cpu();
    }
    std::unique_lock lock(sleep_mutex);
    sleepers.fetch_add(1);
    wake.wait(lock, [&] { return epoch.load() != seen; });
    sleepers.fetch_sub(1);
  }

  void work(int worker) {
    current_pool = this;
    unsigned seen = 0;
    while (true) {
      wait_for_job(seen);
      ++seen;
      if (stop.load()) return;
      call(worker);
      if (running.fetch_sub(1) == 1) {
        const std::lock_guard lock(sleep_mutex);
        done.notify_one();
      }
    }
  }

  void publish() {
    epoch.fetch_add(1);
    // A worker raises `sleepers` under the lock before it looks at epoch for
    // the last time, so none can be missed here.
    if (sleepers.load() > 0) {
      const std::lock_guard lock(sleep_mutex);
      wake.notify_all();
    }
  }

  void end() {
    stop.store(true);
    publish();
    for (auto& t : threads) t.join();
  }

  void wait_for_workers() {
    for (int i = 0; i < kSpins; ++i) {
      if (running.load(std::memory_order_acquire) == 0) return;
      pause_cpu();
    }
    std::unique_lock lock(sleep_mutex);
    done.wait(lock, [&] { return running.load() == 0; });
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads < 1) {
    throw UsageError(
        fmt::format(
            "[base.ThreadPool] threads must be at least 1, got {}", threads
        )
    );
  }
  try {
    for (int i = 1; i < threads; ++i) {
      state_->threads.emplace_back([s = state_.get(), i] { s->work(i); });
    }
  } catch (...) {
    // The system refused a thread: see WorkerQueue.
    state_->end();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  state_->end();
}

int ThreadPool::size() const noexcept {
  return static_cast<int>(state_->threads.size()) + 1;
}

void ThreadPool::run(FunctionRef<void(int worker)> body) {
  State& s = *state_;
  if (s.threads.empty() || current_pool == &s) {
    for (int i = 0; i < size(); ++i) body(i);
    return;
  }
  const std::lock_guard one_job(s.callers);
  s.body = &body;
  s.error = nullptr;
  s.running.store(static_cast<int>(s.threads.size()));
  s.publish();
  const void* outer = std::exchange(current_pool, &s);
  s.call(0);
  current_pool = outer;
  s.wait_for_workers();
  if (s.error) std::rethrow_exception(s.error);
}

Range partition(std::size_t n, std::size_t grain, int worker, int workers) {
  const auto w = static_cast<std::size_t>(worker);
  const auto count = static_cast<std::size_t>(workers);
  grain = std::max<std::size_t>(grain, 1);
  const std::size_t blocks = (n + grain - 1) / grain;
  const std::size_t begin = blocks * w / count * grain;
  const std::size_t end = blocks * (w + 1) / count * grain;
  return {std::min(begin, n), std::min(end, n)};
}

void ThreadPool::parallel_for(
    std::size_t n,
    std::size_t grain,
    FunctionRef<void(std::size_t begin, std::size_t end)> body
) {
  if (n == 0) return;
  if (n <= grain || size() == 1) return body(0, n);
  run([&](int worker) {
    const Range r = partition(n, grain, worker, size());
    if (r.begin < r.end) body(r.begin, r.end);
  });
}

namespace {
std::mutex shared_mutex;
std::optional<int> shared_threads;
std::unique_ptr<ThreadPool> shared;
}  // namespace

ThreadPool& shared_pool() {
  const std::lock_guard lock(shared_mutex);
  if (!shared) {
    shared = std::make_unique<ThreadPool>(
        shared_threads ? *shared_threads : usable_cores()
    );
  }
  return *shared;
}

void set_shared_threads(int threads) {
  const std::lock_guard lock(shared_mutex);
  if (shared && shared->size() != threads) {
    throw Error(
        fmt::format(
            "[base.set_shared_threads] must be called before the pool starts "
            "with "
            "{} threads, got {}",
            shared->size(), threads
        )
    );
  }
  shared_threads = threads;
}

}  // namespace hearth
