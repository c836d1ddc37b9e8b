#include "hearth/hub/file_lock.h"

#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "hearth/base/error.h"

namespace hearth::hub {
namespace {

// False once the file was removed or replaced: whoever opens the path now
// locks another one.
bool is_still_at(const FileHandle& file, const std::string& path) {
  struct stat ours{}, there{};
  return fstat(file.get(), &ours) == 0 && stat(path.c_str(), &there) == 0 &&
         ours.st_ino == there.st_ino && ours.st_dev == there.st_dev;
}

}  // namespace

FileLock::FileLock(
    const std::string& path,
    const std::function<void()>& waiting
) {
  while (true) {
    file_ = FileHandle::open(path, O_RDWR | O_CREAT, "open the lock", 0666);
    if (flock(file_.get(), LOCK_EX | LOCK_NB) == 0) {
      if (is_still_at(file_, path)) return;
    } else if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK) {
      // A file system without locks. Two that fetch the same file then spoil
      // each other's part, which the checksum finds.
      return;
    } else if (errno != EWOULDBLOCK && errno != EACCES && errno != EINTR) {
      throw IoError::from_errno("lock", path);
    }
    waiting();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace hearth::hub
