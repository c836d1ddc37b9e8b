#pragma once
// A file that is there whole or not at all: written beside its place, synced,
// renamed, and the folder synced. After a crash or a full disk the old file
// stands untouched.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "hearth/base/file_handle.h"

namespace hearth {

class AtomicFile {
 public:
  // Starts a new version of path in a temporary file of the same folder.
  explicit AtomicFile(std::string path);
  // Drops the temporary file unless commit() was reached.
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes) { file_.write(bytes); }
  void write(std::string_view text);
  // Puts the new version in place; after it returns the data is on disk.
  void commit();

 private:
  std::string path_;
  FileHandle file_;
  std::string temporary_;
};

// Removes from the folder the temporary files that a process left which was
// killed. For the one process that writes there.
void remove_unfinished(const std::string& folder);

void write_file_atomically(const std::string& path, std::string_view text);
// The whole file as text. Throws FormatError when it is larger than max_bytes.
std::string read_text_file(
    const std::string& path,
    std::size_t max_bytes = std::size_t{64} << 20
);

}  // namespace hearth
