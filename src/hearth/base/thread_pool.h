#pragma once
// One team of threads for all number crunching. The calling thread is worker
// 0; the others spin for a moment after each job and then sleep, so that jobs
// in quick succession start within microseconds and an idle pool costs nothing.
#include <cstddef>
#include <memory>

#include "hearth/base/function_ref.h"

namespace hearth {

class ThreadPool {
 public:
  // threads counts the caller; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const noexcept;

  // Calls body(worker) once for each worker 0..size()-1, concurrently, and
  // returns when all are done. The first exception is rethrown here. A call
  // from inside a job runs every worker's part on the calling thread; calls
  // from different threads wait for each other.
  void run(FunctionRef<void(int worker)> body);

  // Splits [0, n) into one contiguous range a worker, each a multiple of grain
  // (but the last), and calls body(begin, end). The partition depends on
  // n, grain and size() alone. n <= grain runs inline.
  void parallel_for(
      std::size_t n,
      std::size_t grain,
      FunctionRef<void(std::size_t begin, std::size_t end)> body
  );

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct Range {
  std::size_t begin = 0, end = 0;
};
// The part of [0, n) that parallel_for gives to one worker of several.
Range partition(std::size_t n, std::size_t grain, int worker, int workers);

// The process's pool. Its size is set once, before first use, by
// set_shared_threads(); otherwise it is the number of usable cores.
ThreadPool& shared_pool();
void set_shared_threads(int threads);
// Cores this process may run on (its affinity mask). A container's CPU quota
// is `hardware`'s business.
int usable_cores();

}  // namespace hearth
