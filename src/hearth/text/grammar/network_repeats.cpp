// Repetitions: short ones are written out, open ones go round, and long
// counted ones are written once with their counts beside them.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/grammar/network_builder_impl.h"

namespace hearth::text::grammar {
namespace {

// A repetition that would take more states than this when written out is
// counted instead.
constexpr std::size_t kWrittenOut = 64;
// A loop with more than this is made once and called.
constexpr std::size_t kLargeLoop = std::size_t{1} << 20;

}  // namespace

void NetworkBuilder::compile_repeat(const Task& task) {
  const Expr& e = *task.e;
  const Expr& part = *e.parts.front();
  const bool open = e.max == kNoLimit;
  const bool own = own_ == &e;
  own_ = nullptr;
  if (open && e.min <= 1) {
    const StateId begin = state();
    const StateId end = e.min == 0 ? begin : state();
    add_skip(task.from, begin);
    later(part, begin, end, task.order);
    add_skip(end, begin);
    return add_skip(end, task.to);
  }
  const int times = open ? e.min : e.max;
  const std::size_t size = part.size * static_cast<std::size_t>(times);
  if (size <= kWrittenOut) {
    return compile_times(task, times, open);
  }
  if (!own && (in_loop_ || size > kLargeLoop)) return call_shared(task);
  return compile_loop(task);
}

// One after the other; behind the last of an open one, any number more.
void NetworkBuilder::compile_times(const Task& task, int times, bool open) {
  const Expr& part = *task.e->parts.front();
  StateId from = task.from;
  for (int i = 0; i < times; ++i) {
    if (i >= task.e->min) add_skip(from, task.to);
    const bool last = i + 1 == times;
    const StateId next = last && !open ? task.to : state();
    later(part, from, next, task.order);
    if (last && open) {
      // The last of them goes round.
      later(part, next, next, task.order);
      add_skip(next, task.to);
    }
    from = next;
  }
}

// The states of a part lie together, so that those of its nth time are found
// by arithmetic. Loops in it are rules of their own, and have their own states.
void NetworkBuilder::compile_loop(const Task& task) {
  const Expr& e = *task.e;
  const bool open = e.max == kNoLimit;
  StateId to = task.to;
  if (open) {
    to = state();
    later(*e.parts.front(), to, to, task.order);
    add_skip(to, task.to);
  }
  Network::Loop loop;
  loop.from = task.from;
  loop.to = to;
  loop.min = e.min;
  loop.max = open ? e.min : e.max;
  const std::size_t waiting = tasks_.size();
  loop.first = state();
  const StateId end = state();
  in_loop_ = true;
  later(*e.parts.front(), loop.first, end, task.order);
  drain(waiting);
  in_loop_ = false;
  loop.next = state();
  add_skip(end, loop.next);
  network_.loops.push_back(loop);
}

void NetworkBuilder::call_shared(const Task& task) {
  const Expr& e = *task.e;
  const Shared key{e.parts.front().get(), e.min, e.max};
  const auto [found, added] = shared_.try_emplace(key, 0);
  if (added) found->second = new_entry(name_, &e, task.order);
  add_call(task.from, found->second, task.to);
}

}  // namespace hearth::text::grammar
