// How fast the disk is read, past the page cache.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/base/temporary_name.h"
#include "hearth/bench/measure.h"

namespace hearth::bench {
namespace {

constexpr std::size_t kFile = std::size_t{256} << 20;
constexpr std::size_t kBlock = std::size_t{4} << 20;
constexpr int kReaders = 4;  // enough to keep a fast drive's queue full
constexpr double kWriteLimit = 8.0, kReadLimit = 6.0;  // seconds

// Opens past the page cache, or throws IoError.
FileHandle open_direct(const std::string& path) {
#ifdef O_DIRECT
  return FileHandle::open(path, O_RDONLY | O_DIRECT, "read");
#else
  FileHandle file = FileHandle::open(path, O_RDONLY, "read");
  fcntl(file.get(), F_NOCACHE, 1);
  return file;
#endif
}

// Returns how much was written before the time ran out.
std::size_t write_file(const std::string& path) {
  const FileHandle file =
      FileHandle::open(path, O_WRONLY | O_CREAT | O_TRUNC, "create");
  AlignedBuffer block(MemoryZone::named("bench"), kBlock);
  const double start = seconds_now();
  std::size_t written = 0;
  while (written < kFile && seconds_now() - start < kWriteLimit) {
    // Different bytes in each block: some drives and hypervisors fold zeros.
    for (std::size_t i = 0; i < kBlock; i += 64) {
      const std::uint64_t x = (written + i) * 0x9e3779b97f4a7c15ull;
      std::memcpy(block.data() + i, &x, sizeof x);
    }
    file.write({block.data(), kBlock});
    written += kBlock;
  }
  file.sync();
  return written;
}

double read_rate(const std::string& path, std::size_t size) {
  std::atomic<std::size_t> next{0}, done{0};
  const double start = seconds_now();
  std::vector<std::thread> readers;
  for (int r = 0; r < kReaders; ++r) {
    readers.emplace_back([&] {
      const FileHandle file = open_direct(path);
      AlignedBuffer block(MemoryZone::named("bench"), 2 * kBlock);
      while (seconds_now() - start < kReadLimit) {
        const std::size_t at = next.fetch_add(kBlock);
        if (at >= size) return;
        done += file.read_at({block.data(), kBlock}, at);
      }
    });
  }
  for (auto& t : readers) t.join();
  return static_cast<double>(done) / (seconds_now() - start);
}

}  // namespace

std::optional<double> measure_disk_read(
    const std::string& folder,
    std::string& note
) {
  const std::string path = temporary_name(folder + "/disk-probe");
  std::optional<double> rate;
  try {
    const auto space = std::filesystem::space(folder);
    if (space.available < 4 * kFile) {
      note = fmt::format("not measured: {} is nearly full", folder);
      return std::nullopt;
    }
    const std::size_t size = write_file(path);
    (void)open_direct(path);  // refuses here, not inside a thread
    rate = read_rate(path, size) * 1e-9;
    note = fmt::format("{} readers past the page cache", kReaders);
  } catch (const std::exception& e) {
    note = fmt::format("not measured: {}", e.what());
  }
  std::remove(path.c_str());
  return rate;
}

}  // namespace hearth::bench
