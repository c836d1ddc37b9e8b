#pragma once
// A barrier that the threads of one job pass within a microsecond: all of them
// are running, and the work between barriers is short, so they spin. A thread
// that has waited long yields its core, in case there are fewer cores than
// threads.
#include <atomic>
#include <thread>

namespace hearth::infer {

class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}

  void wait() noexcept {
    wait([] { return false; });
  }
  // Calls idle() over and over meanwhile; it says whether it did anything.
  template <class Idle>
  void wait(const Idle& idle) noexcept {
    if (threads_ == 1) return;
    const int turn = turn_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
      return;
    }
    constexpr int kSpins = 2000;
    int spins = 0;
    while (turn_.load(std::memory_order_acquire) == turn) {
      if (++spins < kSpins) {
        if (!idle()) pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<int> turn_{0};

  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
};

}  // namespace hearth::infer
