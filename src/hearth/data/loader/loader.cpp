#include "hearth/data/loader/loader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "hearth/base/clock.h"
#include "hearth/data/loader/loader_engine_impl.h"
#include "hearth/data/loader/loader_fill.h"
#include "hearth/data/loader/loader_state_impl.h"

namespace hearth::data {
// A ring of slots. Slot n % size belongs to batch n: a worker that drew number
// n plans it (in order, under plan_mutex_), fills it (in parallel), marks it
// ready; the caller takes numbers in order.
class Loader::Engine {
 public:
  Engine(std::shared_ptr<const TokenCache> cache, LoaderConfig config)
      : cache_(std::move(cache)),
        config_(std::move(config)),
        parts_(loader_parts(*cache_, config_)),
        planner_(cache_, config_),
        slots_(static_cast<std::size_t>(config_.prefetch)) {
    given_ = planner_.position();
    stats_.workers = config_.workers;
  }
  ~Engine() { stop(); }

  bool next(Batch& batch) {
    const double start = seconds_now();
    const bool got = config_.workers == 0 ? next_now(batch) : next_made(batch);
    std::lock_guard lock(mutex_);
    stats_.stall_seconds += seconds_now() - start;
    if (!got) return false;
    stats_.batches += 1;
    stats_.tokens += batch.tokens;
    stats_.trained += batch.trained;
    stats_.padding += std::uint64_t{batch.rows} * batch.length - batch.tokens;
    return true;
  }

  Json state() const { return position_to_json(given_, parts_, config_); }

  void restore(const Json& json) {
    PlanPosition p = position_from_json(json, parts_, *cache_, config_);
    stop();
    planner_.seek(p);
    given_ = std::move(p);
    for (auto& slot : slots_) {
      slot.status = Status::kFree;
      slot.error = nullptr;
    }
    issued_ = taken_ = 0;
    finished_ = stopping_ = false;
  }

  LoaderStats stats() const {
    std::lock_guard lock(mutex_);
    LoaderStats s = stats_;
    s.truncated = counts_.truncated;
    s.split = counts_.split;
    s.dropped = counts_.dropped;
    s.untrained = counts_.untrained;
    return s;
  }

 private:
  enum class Status { kFree, kBusy, kReady, kEnd };
  struct Slot {
    Status status = Status::kFree;
    BatchPlan plan;
    PlanPosition after;
    LoaderStats counts;
    Batch batch;
    std::exception_ptr error;
  };

  std::shared_ptr<const TokenCache> cache_;
  LoaderConfig config_;
  Json parts_;
  std::mutex plan_mutex_;
  Planner planner_;  // under plan_mutex_ once threads run
  PlanPosition given_;
  BatchPlan plan_now_;

  mutable std::mutex mutex_;
  std::condition_variable ready_, room_;
  std::vector<Slot> slots_;
  std::uint64_t issued_ = 0, taken_ = 0;
  bool finished_ = false, stopping_ = false, asleep_ = false;
  double last_take_ = 0, pause_ = 1e-3;
  LoaderStats stats_, counts_;
  std::vector<std::thread> threads_;

  bool next_now(Batch& batch) {
    if (!planner_.next(plan_now_)) return false;
    fill_batch(*cache_, config_, plan_now_, batch);
    given_ = planner_.position();
    std::lock_guard lock(mutex_);
    counts_ = planner_.counts();
    return true;
  }

  bool next_made(Batch& batch) {
    if (threads_.empty()) {
      for (int i = 0; i < config_.workers; ++i) {
        threads_.emplace_back([this] { work(); });
      }
    }
    std::unique_lock lock(mutex_);
    Slot& slot = slots_[taken_ % slots_.size()];
    ready_.wait(lock, [&] {
      return slot.status == Status::kReady || slot.status == Status::kEnd;
    });
    // The end stays where it is: asking again gets it again.
    if (slot.error) std::rethrow_exception(slot.error);
    if (slot.status == Status::kEnd) return false;
    std::swap(batch, slot.batch);
    given_ = std::move(slot.after);
    counts_ = slot.counts;
    slot.status = Status::kFree;
    ++taken_;
    const double time = seconds_now();
    pause_ = std::clamp((time - last_take_) / 4, 1e-4, 2e-2);
    last_take_ = time;
    // Waking a worker here can cost this thread its core for as long as the
    // worker fills. While batches are at hand it is left to wake by itself.
    const bool urgent = 2 * (issued_ - taken_) <= slots_.size();
    if (asleep_ || urgent) room_.notify_one();
    return true;
  }

  bool has_room() const {
    return stopping_ || finished_ || issued_ < taken_ + slots_.size();
  }

  // Looks for room at the caller's own pace; after a while without any, until
  // it is told.
  void wait_for_room(std::unique_lock<std::mutex>& lock) {
    constexpr int kLooks = 64;
    for (int i = 0; i < kLooks && !has_room(); ++i) {
      room_.wait_for(lock, std::chrono::duration<double>(pause_));
    }
    asleep_ = true;
    room_.wait(lock, [&] { return has_room(); });
    asleep_ = false;
  }

  // Draws a number and plans it. Null when there is nothing left to do.
  Slot* draw() {
    std::lock_guard planning(plan_mutex_);
    std::unique_lock lock(mutex_);
    wait_for_room(lock);
    if (stopping_ || finished_) return nullptr;
    Slot& slot = slots_[issued_++ % slots_.size()];
    slot.status = Status::kBusy;
    lock.unlock();
    bool more = false;
    try {
      more = planner_.next(slot.plan);
      slot.after = planner_.position();
      slot.counts = planner_.counts();
    } catch (...) {
      slot.error = std::current_exception();
    }
    if (more) return &slot;
    lock.lock();
    finished_ = true;
    slot.status = Status::kEnd;
    ready_.notify_one();
    room_.notify_all();
    return nullptr;
  }

  void work() {
    while (Slot* slot = draw()) {
      const double start = seconds_now();
      std::exception_ptr error;
      try {
        fill_batch(*cache_, config_, slot->plan, slot->batch);
      } catch (...) {
        error = std::current_exception();
      }
      std::lock_guard lock(mutex_);
      slot->error = error;
      slot->status = error ? Status::kEnd : Status::kReady;
      stats_.fill_seconds += seconds_now() - start;
      ready_.notify_one();
    }
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    room_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
};

Loader::Loader(std::shared_ptr<const TokenCache> cache, LoaderConfig config) {
  config = complete_config(std::move(config));
  if (config.workers < 0) {
    trials_ = try_workers(cache, config);
    config.workers = trials_.back().workers;
  }
  engine_ = std::make_unique<Engine>(std::move(cache), std::move(config));
}

Loader::~Loader() = default;

bool Loader::next(Batch& batch) {
  return engine_->next(batch);
}
Json Loader::state() const {
  return engine_->state();
}
void Loader::restore(const Json& state) {
  engine_->restore(state);
}
LoaderStats Loader::stats() const {
  return engine_->stats();
}

}  // namespace hearth::data
