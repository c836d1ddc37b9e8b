#include "hearth/train/loop/folder_lock.h"

#include <cerrno>
#include <span>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"

namespace hearth::train {

// The kernel frees the lock when the process dies, so one that is held is
// held by a living process; the number in the file is for the message.
FileHandle lock_folder(
    const std::string& folder,
    std::string_view area,
    std::string_view does
) {
  const std::string name = folder + "/" + kLockFile;
  FileHandle lock = FileHandle::open(name, O_RDWR | O_CREAT, "create");
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) throw IoError::from_errno("lock", name);
    throw UsageError(
        fmt::format(
            "[{}] {} must not be in use, but process {} {} in it", area, folder,
            read_text_file(name, 64), does
        ),
        "wait for it or stop it, or give another folder with -o"
    );
  }
  if (ftruncate(lock.get(), 0) != 0) throw IoError::from_errno("write", name);
  const std::string pid = std::to_string(getpid());
  lock.write(std::as_bytes(std::span(pid)));
  return lock;
}

}  // namespace hearth::train
