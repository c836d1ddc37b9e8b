#pragma once
// Ctrl-C and SIGTERM as a question: while one of these lives, the first signal
// is only noted, so that work can be saved; a second one ends the process.
namespace hearth::cli {

class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();

 private:
  void (*before_int_)(int);
  void (*before_term_)(int);
};

}  // namespace hearth::cli
