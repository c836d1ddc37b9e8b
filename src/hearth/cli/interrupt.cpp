#include "hearth/cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace hearth::cli {
namespace {

std::atomic<bool> g_interrupted{false};

void note_signal(int signal) {
  if (g_interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

InterruptGuard::InterruptGuard()
    : before_int_(std::signal(SIGINT, note_signal)),
      before_term_(std::signal(SIGTERM, note_signal)) {
  g_interrupted = false;
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, before_int_);
  std::signal(SIGTERM, before_term_);
}

bool InterruptGuard::interrupted() {
  return g_interrupted;
}

}  // namespace hearth::cli
