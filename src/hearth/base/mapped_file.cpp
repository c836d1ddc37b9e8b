#include "hearth/base/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"

namespace hearth {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Opening must not wait for a writer where the path is a pipe; a pipe cannot
  // be mapped anyway.
  const FileHandle file = FileHandle::open(path, O_RDONLY | O_NONBLOCK, "open");
  struct stat info{};
  if (fstat(file.get(), &info) != 0) throw IoError::from_errno("read", path);
  if (!S_ISREG(info.st_mode)) {
    throw IoError(
        fmt::format(
            "cannot map {}: {}", path,
            S_ISDIR(info.st_mode) ? "it is a folder" : "it is no regular file"
        )
    );
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* p = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (p == MAP_FAILED) throw IoError::from_errno("map", path);
  data_ = static_cast<const std::byte*>(p);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

void MappedFile::advise(
    Access access,
    std::size_t begin,
    std::size_t size
) const {
  if (begin >= size_) return;
  static constexpr int kAdvice[] = {
      MADV_NORMAL, MADV_SEQUENTIAL, MADV_RANDOM, MADV_WILLNEED, MADV_DONTNEED
  };
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t start = begin / page * page;
  const std::size_t end =
      std::min(size_, begin + std::min(size, size_ - begin));
  // Only advice: a refusal changes nothing.
  madvise(
      const_cast<std::byte*>(data_) + start, end - start,
      kAdvice[static_cast<int>(access)]
  );
}

}  // namespace hearth
