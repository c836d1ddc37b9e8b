#pragma once
// Lets any thread end a loop's poll().
#include <atomic>

namespace hearth::serve {

class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  void call();
  // The loop's: what was done before a call is seen after the answer to it.
  void answer();
  int fd() const { return ends_[0]; }  // readable when called

 private:
  int ends_[2] = {-1, -1};
  std::atomic<bool> called_{false};
};

}  // namespace hearth::serve
