#include "hearth/cli/interrupt.h"

#include <atomic>
#include <csignal>
#include <cstring>

#include <unistd.h>

#include "hearth/base/error.h"

namespace hearth::cli {
namespace {

using Handler = void (*)(int);

std::atomic<bool> g_interrupted{false};
std::atomic<const char*> g_said{nullptr};
int g_guards = 0;
Handler g_before_int = SIG_DFL, g_before_term = SIG_DFL;

// Runs in a signal handler, so it uses only atomics and write().
void note_signal(int signal) {
  if (g_interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
    return;
  }
  const char* said = g_said;
  if (said == nullptr) return;
  [[maybe_unused]] const auto n = write(STDERR_FILENO, said, std::strlen(said));
}

}  // namespace

InterruptGuard::InterruptGuard(const char* said)
    : said_before_(g_said.exchange(said != nullptr ? said : g_said.load())) {
  if (g_guards++ > 0) return;
  g_interrupted = false;
  g_before_int = std::signal(SIGINT, note_signal);
  g_before_term = std::signal(SIGTERM, note_signal);
}

InterruptGuard::~InterruptGuard() {
  g_said = said_before_;
  if (--g_guards > 0) return;
  std::signal(SIGINT, g_before_int);
  std::signal(SIGTERM, g_before_term);
}

bool InterruptGuard::interrupted() {
  return g_interrupted;
}

void InterruptGuard::check(const char* what) {
  if (interrupted()) throw Interrupted(what);
}

}  // namespace hearth::cli
