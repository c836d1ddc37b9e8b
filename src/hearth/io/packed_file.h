#pragma once
// A file of weights in the layout that kernels read, mapped and used in place:
//
//   64 bytes that name the format, the entries' bytes, a table as JSON, a
//   32-byte end: where the table lies, its length, its hash, the name again
//
// An entry's bytes begin at a multiple of 64, and the 8 bytes before them hold
// their length, where MLX's allocator keeps it too. The table has a hash of
// every block of the file. The file is written in one go, and its end shows
// whether it is complete. What an entry means, and whether it belongs to a
// model, is for others.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/atomic_file.h"
#include "hearth/base/hash.h"
#include "hearth/base/json.h"
#include "hearth/base/mapped_file.h"
#include "hearth/base/thread_pool.h"

namespace hearth::io {

struct PackedEntry {
  std::string name, form, type;  // such as "value", "bf16"
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

class PackedFile {
 public:
  // Reads and checks the table; the entries' bytes are only mapped. Throws
  // IoError or FormatError, one line that names the file.
  static std::shared_ptr<const PackedFile> open(const std::string& path);
  // A file whose bytes are in memory; they must outlive it.
  PackedFile(std::span<const std::byte> bytes, std::string name);
  explicit PackedFile(MappedFile file);

  const std::string& name() const { return name_; }
  std::size_t size() const { return bytes_.size(); }
  // What the writer said the file is bound to.
  const Json& about() const { return about_; }
  std::span<const PackedEntry> entries() const { return entries_; }
  std::span<const std::byte> bytes(const PackedEntry& entry) const {
    return bytes_.subspan(entry.offset, entry.bytes);
  }

  // What one hash covers, and one thread reads at a time.
  static constexpr std::size_t kBlock = std::size_t{8} << 20;
  // Reads all of it, which brings it into memory as well, and throws
  // FormatError when a block is not what was written. Returns the seconds that
  // a thread took for each block.
  std::vector<double> verify(ThreadPool& pool) const;

 private:
  MappedFile file_;
  std::string name_;
  std::span<const std::byte> bytes_;
  Json about_;
  std::vector<PackedEntry> entries_;
  std::vector<std::uint64_t> blocks_;
  std::size_t table_begin_ = 0;

  void read_table();
  void read_entry(const Json& from);
  [[noreturn]] void fail(std::size_t offset, std::string_view what) const;
};

class PackedFileWriter {
 public:
  // The file appears at path with finish().
  explicit PackedFileWriter(const std::string& path);
  // offset and bytes of the entry are filled in here.
  void add(PackedEntry entry, std::span<const std::byte> bytes);
  // Returns the size of the file.
  std::size_t finish(const Json& about);

 private:
  AtomicFile file_;
  std::size_t at_ = 0;
  std::vector<PackedEntry> entries_;
  Hash64 block_;
  std::vector<std::uint64_t> blocks_;

  void write(std::span<const std::byte> bytes);
};

}  // namespace hearth::io
