#pragma once
// While one lives, writing to a connection that was closed is an error and not
// a signal that ends the process. Only this thread is touched.
#include <csignal>

namespace hearth::net {

class NoPipeSignal {
 public:
  NoPipeSignal() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    was_pending_ = is_pending();
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    int taken = 0;
    if (!was_pending_ && is_pending()) sigwait(&pipe_, &taken);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
  }

  sigset_t pipe_{}, before_{};
  bool was_pending_ = false;
};

}  // namespace hearth::net
