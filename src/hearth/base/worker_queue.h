#pragma once
// A few threads that run jobs. Those of one owner are begun in the order they
// came, and owners take turns, so that one with many does not delay the rest.
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hearth/base/clock.h"

namespace hearth {

class WorkerQueue {
 public:
  // leave_one: the jobs of one owner never run on all the threads at once,
  // where there is more than one thread.
  enum class Sharing : unsigned char { all, leave_one };
  explicit WorkerQueue(int threads, Sharing sharing = Sharing::all);
  // As end().
  ~WorkerQueue();
  WorkerQueue(const WorkerQueue&) = delete;
  WorkerQueue& operator=(const WorkerQueue&) = delete;

  // A job must not throw. After end() it is dropped.
  void push(const std::string& owner, std::function<void()> job);
  // Drops what has not begun and waits for what has.
  void end();

  struct State {
    std::size_t threads = 0, busy = 0, waiting = 0;
    // The longest time, in seconds, that a job has run or waited so far.
    double longest_run = 0, longest_wait = 0;
  };
  State state() const;

 private:
  struct Job {
    std::function<void()> run;
    Clock::time_point since;
  };
  struct Owner {
    std::deque<Job> jobs;
    std::size_t running = 0;
  };
  struct Worker {
    std::thread thread;
    Clock::time_point since;  // of the job it runs
    bool busy = false;
  };

  void work(Worker& self);
  // The owner whose turn it is; the end where none may run.
  std::map<std::string, Owner>::iterator next();

  const std::size_t most_of_one_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::map<std::string, Owner> owners_;  // with jobs that wait or run
  std::string last_;                     // whose turn it was
  bool ending_ = false;
  std::deque<Worker> workers_;
};

}  // namespace hearth
