#include "hearth/serve/http/wakeup.h"

#include <fcntl.h>
#include <unistd.h>

#include "hearth/base/error.h"

namespace hearth::serve {

Wakeup::Wakeup() {
  if (pipe(ends_) != 0) throw IoError::from_errno("open", "a pipe");
  for (const int fd : ends_) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

Wakeup::~Wakeup() {
  close(ends_[0]);
  close(ends_[1]);
}

void Wakeup::call() {
  if (called_.exchange(true)) return;
  // A full pipe wakes the loop just as well.
  [[maybe_unused]] const ssize_t n = write(ends_[1], "", 1);
}

void Wakeup::answer() {
  char bytes[16];
  while (read(ends_[0], bytes, sizeof bytes) > 0) continue;
  called_.exchange(false);
}

}  // namespace hearth::serve
