#pragma once
// A whole file as read-only bytes, mapped rather than read.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

class MappedFile {
 public:
  MappedFile() = default;
  // Throws IoError when the file cannot be opened, or is a folder.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  // Empty for an empty file.
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(data_), size_};
  }
  std::size_t size() const noexcept { return size_; }
  const std::string& path() const noexcept { return path_; }

  enum class Access { kNormal, kSequential, kRandom, kSoon, kDone };
  // Tells the system how a range will be read; a range past the end is cut.
  // kDone takes its pages from this process's memory until they are read again.
  void advise(Access access, std::size_t begin, std::size_t size) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
};

}  // namespace hearth
