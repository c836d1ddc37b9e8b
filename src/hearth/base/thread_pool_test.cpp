#include "hearth/base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

TEST(ThreadPool, EveryWorkerRunsOnceAJob) {
  ThreadPool pool(4);
  for (int job = 0; job < 500; ++job) {
    std::atomic<int> mask{0};
    pool.run([&](int worker) { mask.fetch_add(1 << (4 * worker)); });
    ASSERT_EQ(mask.load(), 0x1111);
  }
}

TEST(ThreadPool, WakesWorkersThatWentToSleep) {
  ThreadPool pool(3);
  for (int job = 0; job < 5; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> count{0};
    pool.run([&](int) { ++count; });
    EXPECT_EQ(count.load(), 3);
  }
}

TEST(ThreadPool, ParallelForCoversEachIndexOnce) {
  ThreadPool pool(3);
  for (const std::size_t n : {0ul, 1ul, 2ul, 3ul, 7ul, 64ul, 1000ul}) {
    for (const std::size_t grain : {1ul, 4ul, 64ul}) {
      std::vector<std::atomic<int>> seen(n);
      pool.parallel_for(n, grain, [&](std::size_t begin, std::size_t end) {
        EXPECT_TRUE(begin % grain == 0);
        for (std::size_t i = begin; i < end; ++i) ++seen[i];
      });
      for (const auto& s : seen) ASSERT_EQ(s.load(), 1);
    }
  }
}

TEST(ThreadPool, PartitionDependsOnItsArgumentsAlone) {
  std::size_t next = 0;
  for (int w = 0; w < 5; ++w) {
    const Range r = partition(103, 8, w, 5);
    EXPECT_EQ(r.begin, next);
    EXPECT_TRUE(r.end == 103 || r.end % 8 == 0);
    next = r.end;
  }
  EXPECT_EQ(next, 103u);
}

TEST(ThreadPool, RethrowsOnTheCallerAndStaysUsable) {
  ThreadPool pool(3);
  for (int bad = 0; bad < 3; ++bad) {
    EXPECT_THROW(
        pool.run([&](int worker) {
          if (worker == bad) throw std::runtime_error("planted");
        }),
        std::runtime_error
    );
    int sum = 0;
    std::mutex mutex;
    pool.run([&](int worker) {
      const std::lock_guard lock(mutex);
      sum += worker;
    });
    EXPECT_EQ(sum, 3);
  }
}

TEST(ThreadPool, ANestedJobRunsOnItsOwnThread) {
  ThreadPool pool(2);
  std::atomic<int> inner{0};
  pool.run([&](int) {
    const auto me = std::this_thread::get_id();
    pool.run([&](int) {
      EXPECT_EQ(std::this_thread::get_id(), me);
      ++inner;
    });
  });
  EXPECT_EQ(inner.load(), 4);
}

TEST(ThreadPool, CallersFromSeveralThreadsTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int> active{0}, total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        pool.run([&](int worker) {
          ++total;
          if (worker != 0) return;
          EXPECT_EQ(active.fetch_add(1), 0);
          active.fetch_sub(1);
        });
      }
    });
  }
  for (auto& t : callers) t.join();
  EXPECT_EQ(total.load(), 4 * 100 * 2);
}

TEST(ThreadPool, RefusesAnEmptyTeam) {
  EXPECT_THROW(ThreadPool(0), UsageError);
}

}  // namespace
}  // namespace hearth
