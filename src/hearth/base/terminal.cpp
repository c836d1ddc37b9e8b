#include "hearth/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "hearth/base/env.h"

namespace hearth {
namespace {

bool color_on(bool terminal) {
  return terminal && !env::get(env::kNoColor) && env::get("TERM") != "dumb";
}

}  // namespace

bool stdout_is_terminal() {
  return isatty(STDOUT_FILENO) == 1;
}
bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}
bool color_on_stdout() {
  return color_on(stdout_is_terminal());
}
bool color_on_stderr() {
  return color_on(stderr_is_terminal());
}

int terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return 80;
  }
  return size.ws_col;
}

}  // namespace hearth
