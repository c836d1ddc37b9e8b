#include "hearth/base/worker_queue.h"

#include <atomic>
#include <fstream>
#include <future>
#include <system_error>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/thread_pool.h"

namespace hearth {
namespace {

// A job that says it has begun and waits until it is let go.
struct Held {
  std::promise<void> begun, go;
  std::function<void()> job() {
    return [this] {
      begun.set_value();
      go.get_future().wait();
    };
  }
  bool begins(int ms = 10'000) {
    return begun.get_future().wait_for(std::chrono::milliseconds(ms)) ==
           std::future_status::ready;
  }
};

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
// What happens in a process that may have so much more memory: room for the
// stacks of a few threads. 0: the system's refusal of a thread was thrown on.
template <class Make>
int where_threads_are_refused(const Make& make) {
  const pid_t child = fork();
  if (child == 0) {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    constexpr rlim_t kMore = rlim_t{1} << 30;
    const auto page = static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    const rlim_t room = static_cast<rlim_t>(pages) * page + kMore;
    const rlimit limit{room, room};
    setrlimit(RLIMIT_AS, &limit);
    try {
      make();
    } catch (const std::system_error&) {
      _exit(0);
    }
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

constexpr int kTooMany = 10'000;

TEST(WorkerQueue, ARefusedThreadIsAnErrorAndNotTheEnd) {
  EXPECT_EQ(where_threads_are_refused([] { WorkerQueue queue(kTooMany); }), 0);
}

TEST(ThreadPool, ARefusedThreadIsAnErrorAndNotTheEnd) {
  EXPECT_EQ(where_threads_are_refused([] { ThreadPool pool(kTooMany); }), 0);
}
#endif

TEST(WorkerQueue, OwnersTakeTurns) {
  Held first;
  std::string order;
  std::promise<void> all;
  WorkerQueue queue(1);
  queue.push("x", first.job());
  ASSERT_TRUE(first.begins());
  for (const char* owner : {"a", "a", "a", "b", "c"}) {
    queue.push(owner, [&, owner] {
      order += owner;
      if (order.size() == 5) all.set_value();
    });
  }
  EXPECT_EQ(queue.state().waiting, 5U);
  first.go.set_value();
  all.get_future().wait();
  EXPECT_EQ(order, "abcaa");
}

TEST(WorkerQueue, OneOwnerLeavesAThreadToOthers) {
  Held first, second, other;
  WorkerQueue queue(2, WorkerQueue::Sharing::leave_one);
  queue.push("a", first.job());
  queue.push("a", second.job());
  ASSERT_TRUE(first.begins());
  queue.push("b", other.job());
  EXPECT_TRUE(other.begins());
  EXPECT_EQ(queue.state().busy, 2U);
  EXPECT_EQ(queue.state().waiting, 1U);
  first.go.set_value();
  EXPECT_TRUE(second.begins());
  second.go.set_value();
  other.go.set_value();
}

TEST(WorkerQueue, SaysWhatRunsAndWaitsForLongest) {
  Held held;
  WorkerQueue queue(1);
  queue.push("a", held.job());
  ASSERT_TRUE(held.begins());
  queue.push("a", [] {});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const auto state = queue.state();
  EXPECT_EQ(state.threads, 1U);
  EXPECT_EQ(state.busy, 1U);
  EXPECT_GE(state.longest_run, 0.02);
  EXPECT_GE(state.longest_wait, 0.02);
  held.go.set_value();
  for (int i = 0; i < 5000 && queue.state().busy > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(queue.state().longest_run, 0);
  EXPECT_EQ(queue.state().longest_wait, 0);
}

TEST(WorkerQueue, WhatHasNotBegunIsDropped) {
  std::atomic<int> ran{0};
  {
    Held held;
    WorkerQueue queue(1);
    queue.push("a", [&] {
      held.job()();
      ++ran;
    });
    ASSERT_TRUE(held.begins());
    queue.push("a", [&] { ++ran; });
    std::thread ends([&] { queue.end(); });
    while (queue.state().waiting > 0) std::this_thread::yield();
    held.go.set_value();
    ends.join();
    queue.push("a", [&] { ++ran; });
  }
  EXPECT_EQ(ran, 1);
}

}  // namespace
}  // namespace hearth
