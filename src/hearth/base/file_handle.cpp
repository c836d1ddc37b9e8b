#include "hearth/base/file_handle.h"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "hearth/base/error.h"

namespace hearth {

FileHandle::FileHandle(int descriptor, std::string path)
    : descriptor_(descriptor), path_(std::move(path)) {}

FileHandle FileHandle::open(
    const std::string& path,
    int flags,
    const char* action,
    int mode
) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (descriptor < 0) throw IoError::from_errno(action, path);
  return FileHandle(descriptor, path);
}

std::optional<FileHandle> FileHandle::create_new(
    const std::string& path,
    int mode
) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), flags, mode);
  if (descriptor >= 0) return FileHandle(descriptor, path);
  if (errno == EEXIST) return std::nullopt;
  throw IoError::from_errno("create", path);
}

FileHandle::~FileHandle() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileHandle::FileHandle(FileHandle&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)) {}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

void FileHandle::write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::write(descriptor_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError::from_errno("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
}

std::size_t FileHandle::read_at(
    std::span<std::byte> out,
    std::size_t offset
) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n = pread(
        descriptor_, out.data() + done, out.size() - done,
        static_cast<off_t>(offset + done)
    );
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw IoError::from_errno("read", path_);
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void FileHandle::sync() const {
#ifdef F_FULLFSYNC
  // On macOS fsync() leaves data in the drive's own cache.
  if (fcntl(descriptor_, F_FULLFSYNC) == 0) return;
#endif
  if (fsync(descriptor_) != 0) throw IoError::from_errno("sync", path_);
}

void FileHandle::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor >= 0 && ::close(descriptor) != 0) {
    throw IoError::from_errno("close", path_);
  }
}

}  // namespace hearth
