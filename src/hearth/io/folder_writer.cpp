// AtomicFolder: a folder that appears when it is whole.
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/base/temporary_name.h"
#include "hearth/io/folder_writer_impl.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

void rename_or_throw(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) {
    throw IoError::from_errno("replace", to);
  }
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

AtomicFolder::AtomicFolder(
    const std::string& path,
    bool force,
    const std::string& mark
)
    : path_(without_slash(path)), temporary_(temporary_name(path_)) {
  std::error_code error;
  if (fs::exists(path_, error)) {
    const bool empty =
        fs::is_directory(path_, error) && fs::is_empty(path_, error);
    if (!force && !empty) {
      throw UsageError(
          fmt::format("{}: is there already", path_), "--force replaces it"
      );
    }
    if (!empty && !fs::exists(fs::path(path_) / mark, error)) {
      throw UsageError(
          fmt::format(
              "{}: is there and has no {}: it is not replaced", path_, mark
          )
      );
    }
  }
  if (!fs::create_directories(temporary_, error)) {
    throw IoError(
        fmt::format("cannot create {}: {}", temporary_, error.message())
    );
  }
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

std::string AtomicFolder::file(const std::string& name) const {
  return (fs::path(temporary_) / name).string();
}

void AtomicFolder::commit() {
  std::error_code error;
  std::string old;
  if (fs::exists(path_, error)) {
    old = temporary_name(path_ + ".old");
    rename_or_throw(path_, old);
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int why = errno;
    if (!old.empty()) rename_or_throw(old, path_);
    errno = why;
    throw IoError::from_errno("create", path_);
  }
  temporary_.clear();
  // A rename is on disk only when the folder that holds it is.
  const std::string parent = fs::path(path_).parent_path().string();
  FileHandle::open(
      parent.empty() ? "." : parent, O_RDONLY | O_DIRECTORY, "open"
  )
      .sync();
  if (!old.empty()) fs::remove_all(old, error);
}

}  // namespace hearth::io
