#include "hearth/base/atomic_file.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"
#include "hearth/base/temporary_name.h"
#include "hearth/base/units.h"

namespace hearth {
namespace {

// A rename is on disk only when the folder that holds it is.
void sync_folder_of(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  FileHandle::open(folder, O_RDONLY | O_DIRECTORY, "open").sync();
}

}  // namespace

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)),
      file_(create_temporary(path_)),
      temporary_(file_.path()) {}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) std::remove(temporary_.c_str());
}

void AtomicFile::write(std::string_view text) {
  file_.write(std::as_bytes(std::span(text)));
}

void AtomicFile::commit() {
  file_.sync();
  file_.close();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw IoError::from_errno("replace", path_);
  }
  temporary_.clear();
  sync_folder_of(path_);
}

void remove_unfinished(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (is_temporary_name(entry.path().filename().string())) {
      found.push_back(entry.path());
    }
  }
  for (const fs::path& path : found) fs::remove(path, none);
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

std::string read_text_file(const std::string& path, std::size_t max_bytes) {
  // Read, not mapped: the file may be a pipe or change while we look at it.
  const FileHandle file = FileHandle::open(path, O_RDONLY, "read");
  std::string text;
  std::byte buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0) throw IoError::from_errno("read", path);
    if (n == 0) return text;
    if (text.size() + static_cast<std::size_t>(n) > max_bytes) {
      throw FormatError(
          fmt::format(
              "{}: a file of this kind must be at most {}", path,
              format_bytes(max_bytes)
          )
      );
    }
    text.append(reinterpret_cast<char*>(buffer), static_cast<std::size_t>(n));
  }
}

}  // namespace hearth
