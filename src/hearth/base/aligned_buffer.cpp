#include "hearth/base/aligned_buffer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"

namespace hearth {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
// A multiple of every system's ordinary page.
constexpr std::size_t kPage = std::size_t{16} << 10;

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

// From a huge page's start on; the system fills pages with zeros as they are
// touched. The end lies on ordinary pages, so that a matrix of just over 6 MiB
// does not take 8.
void* map_pages(std::size_t bytes) {
  void* p = mmap(
      nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
  );
  if (p == MAP_FAILED) return nullptr;
  // Give back what lies before and behind the aligned part.
  auto* start = static_cast<std::byte*>(p);
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::size_t before = round_up(address, kHugePage) - address;
  if (before > 0) munmap(start, before);
  if (before < kHugePage) munmap(start + before + bytes, kHugePage - before);
#ifdef MADV_HUGEPAGE
  madvise(start + before, bytes, MADV_HUGEPAGE);
#endif
  return start + before;
}

}  // namespace

std::size_t AlignedBuffer::taken(std::size_t bytes) {
  return round_up(bytes, bytes >= kHugeFrom ? kPage : kAlignment);
}

AlignedBuffer::AlignedBuffer(MemoryZone zone, std::size_t bytes) {
  if (bytes == 0) return;
  const bool huge = bytes >= kHugeFrom;
  const std::size_t all = taken(bytes);
  charge_memory(zone, all);
  void* p = huge ? map_pages(all) : std::aligned_alloc(kAlignment, all);
  if (p == nullptr) {
    release_memory(zone, all);
    throw OutOfMemory(
        fmt::format(
            "[base.AlignedBuffer] the system must have {} for {}, it refused",
            format_bytes(all), zone.name()
        )
    );
  }
  if (!huge) std::memset(p, 0, all);
  data_ = static_cast<std::byte*>(p);
  size_ = bytes;
  mapped_ = all;
  zone_ = zone;
}

AlignedBuffer::~AlignedBuffer() {
  free();
}

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)),
      zone_(std::exchange(other.zone_, std::nullopt)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  if (this == &other) return *this;
  free();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_ = std::exchange(other.mapped_, 0);
  zone_ = std::exchange(other.zone_, std::nullopt);
  return *this;
}

void AlignedBuffer::free() noexcept {
  if (data_ == nullptr) return;
  if (size_ >= kHugeFrom) {
    munmap(data_, mapped_);
  } else {
    std::free(data_);
  }
  if (zone_) release_memory(*zone_, mapped_);
  data_ = nullptr;
}

}  // namespace hearth
