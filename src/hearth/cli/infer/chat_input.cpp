#include "hearth/cli/infer/chat_input.h"

#include <atomic>
#include <cerrno>
#include <csignal>

#include <unistd.h>

#include <poll.h>

namespace hearth::cli {
namespace {

std::atomic<bool> g_pressed{false};
struct sigaction g_before;

void note(int) {
  g_pressed = true;
}

}  // namespace

// Calls go on: text on its way to a terminal that is behind must arrive. Lines
// are waited for by poll, which ends all the same.
CtrlC::CtrlC() {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, &g_before);
  g_pressed = false;
}

CtrlC::~CtrlC() {
  sigaction(SIGINT, &g_before, nullptr);
}

bool CtrlC::pressed() {
  return g_pressed;
}

void CtrlC::forget() {
  g_pressed = false;
}

bool ChatInput::is_terminal() {
  return isatty(STDIN_FILENO) == 1;
}

std::optional<ChatInput::Line> ChatInput::one_line() {
  for (;;) {
    const auto end = buffer_.find('\n');
    if (end != std::string::npos || (ended_ && !buffer_.empty())) {
      Line line;
      line.text = buffer_.substr(0, end);
      buffer_.erase(0, end == std::string::npos ? end : end + 1);
      if (line.text.ends_with('\r')) line.text.pop_back();
      return line;
    }
    if (ended_) return std::nullopt;
    if (CtrlC::pressed()) {
      CtrlC::forget();
      buffer_.clear();
      return Line{{}, true};
    }
    // A signal between that look and the wait must not be slept through.
    constexpr int kTickMs = 50;
    pollfd input{STDIN_FILENO, POLLIN, 0};
    if (poll(&input, 1, kTickMs) <= 0) continue;
    char bytes[4096];
    const auto n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n > 0) {
      buffer_.append(bytes, static_cast<std::size_t>(n));
    } else if (n == 0 || errno != EINTR) {
      ended_ = true;
    }
  }
}

std::optional<ChatInput::Line> ChatInput::next() {
  auto line = one_line();
  while (line && !line->dropped && line->text.ends_with('\\')) {
    line->text.back() = '\n';
    const auto more = one_line();
    if (!more) break;
    if (more->dropped) return more;
    line->text += more->text;
  }
  return line;
}

}  // namespace hearth::cli
