#pragma once
// Ctrl-C and SIGTERM as a question: while one of these lives, the first signal
// is only noted, so that work can be saved; a second one ends the process.
namespace hearth::cli {

// One inside another changes nothing: what was noted stays noted until the
// outermost is gone.
class InterruptGuard {
 public:
  // `said`, where given, is printed to stderr when the signal comes. It must
  // outlive the guard.
  explicit InterruptGuard(const char* said = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static bool interrupted();
  // Throws Interrupted with that text once it is.
  static void check(const char* what);

 private:
  const char* said_before_;
};

}  // namespace hearth::cli
