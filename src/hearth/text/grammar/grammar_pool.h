#pragma once
// Two threads apart for what of a grammar is more than a little work, so that
// whoever serves many texts waits for none of it. Owners take turns, and one of
// them leaves a thread to the others.
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "hearth/base/effort.h"
#include "hearth/base/worker_queue.h"

namespace hearth::text {

class GrammarPool {
 public:
  using Work = std::function<void(Effort&)>;

  // A piece of work that was handed over.
  class Ticket {
   public:
    // Once this is true, the pool touches nothing of the work any more.
    bool done() const { return done_.load(std::memory_order_acquire); }
    // Throws what the work threw. Only when it is done.
    void rethrow() const {
      if (error_) std::rethrow_exception(error_);
    }
    // Nobody waits for it: it ends soon, or does not begin.
    void call_off() { called_off_->store(true, std::memory_order_relaxed); }

   private:
    friend class GrammarPool;
    std::shared_ptr<std::atomic<bool>> called_off_ =
        std::make_shared<std::atomic<bool>>(false);
    std::exception_ptr error_;
    std::atomic<bool> done_ = false;
  };

  // on_done is called on a thread of the pool, after each piece of work.
  explicit GrammarPool(std::function<void()> on_done = {});

  // The work counts to an effort of its own, and must not use more of it than
  // there is.
  std::shared_ptr<Ticket> submit(const std::string& owner, Work work);
  // Lets something large go, where that delays nobody.
  void discard(const std::string& owner, std::shared_ptr<const void> what);
  // May be asked on any thread.
  WorkerQueue::State state() const;

 private:
  std::function<void()> on_done_;
  // The threads begin with the first piece of work: most have no grammar.
  mutable std::mutex mutex_;
  std::unique_ptr<WorkerQueue> queue_;

  WorkerQueue& queue();
};

}  // namespace hearth::text
