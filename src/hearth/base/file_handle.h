#pragma once
// An open file that closes itself, with errors that name the file.
#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace hearth {

class FileHandle {
 public:
  FileHandle() = default;
  // flags and mode as open(2); `action` is the verb of the error message.
  static FileHandle open(
      const std::string& path,
      int flags,
      const char* action,
      int mode = 0644
  );
  // Creates a file and opens it to write; returns nothing where a file of that
  // name exists.
  static std::optional<FileHandle> create_new(
      const std::string& path,
      int mode = 0644
  );
  ~FileHandle();
  FileHandle(FileHandle&& other) noexcept;
  FileHandle& operator=(FileHandle&& other) noexcept;

  int get() const noexcept { return descriptor_; }
  const std::string& path() const noexcept { return path_; }
  // Writes all of it, however the system splits the work.
  void write(std::span<const std::byte> bytes) const;
  // Reads up to out.size() bytes at offset; fewer only at the end of the file.
  std::size_t read_at(std::span<std::byte> out, std::size_t offset) const;
  void sync() const;
  // Closes and reports what a delayed write may have left to report.
  void close();

 private:
  FileHandle(int descriptor, std::string path);
  int descriptor_ = -1;
  std::string path_;
};

}  // namespace hearth
