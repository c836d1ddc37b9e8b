#include "hearth/text/grammar/grammar_pool.h"

#include <utility>

namespace hearth::text {
namespace {

constexpr int kThreads = 2;

}  // namespace

GrammarPool::GrammarPool(std::function<void()> on_done)
    : on_done_(std::move(on_done)) {}

WorkerQueue& GrammarPool::queue() {
  const std::lock_guard lock(mutex_);
  if (!queue_) {
    queue_ = std::make_unique<WorkerQueue>(
        kThreads, WorkerQueue::Sharing::leave_one
    );
  }
  return *queue_;
}

std::shared_ptr<GrammarPool::Ticket> GrammarPool::submit(
    const std::string& owner,
    Work work
) {
  auto ticket = std::make_shared<Ticket>();
  queue().push(owner, [this, ticket, work = std::move(work)]() mutable {
    try {
      Effort effort;
      effort.unless(ticket->called_off_);
      effort.look();
      work(effort);
    } catch (...) {
      ticket->error_ = std::current_exception();
    }
    // What it holds may be large, and goes here where nobody else has it.
    work = nullptr;
    ticket->done_.store(true, std::memory_order_release);
    if (on_done_) on_done_();
  });
  return ticket;
}

void GrammarPool::discard(
    const std::string& owner,
    std::shared_ptr<const void> what
) {
  queue().push(owner, [what = std::move(what)]() mutable { what = nullptr; });
}

WorkerQueue::State GrammarPool::state() const {
  const std::lock_guard lock(mutex_);
  return queue_ ? queue_->state() : WorkerQueue::State{};
}

}  // namespace hearth::text
