#include "hearth/base/aligned_buffer.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/huge_pieces.h"
#include "hearth/base/rounding.h"
#include "hearth/base/units.h"

namespace hearth {
namespace {

// A multiple of every system's ordinary page. Large buffers end on one, so
// that a matrix of just over 6 MiB does not take 8.
constexpr std::size_t kPage = std::size_t{16} << 10;

}  // namespace

std::size_t AlignedBuffer::taken(std::size_t bytes) {
  return round_up(bytes, bytes >= kHugeFrom ? kPage : kAlignment);
}

AlignedBuffer::AlignedBuffer(MemoryZone zone, std::size_t bytes, Kept kept) {
  if (bytes == 0) return;
  const bool huge = bytes >= kHugeFrom;
  const std::size_t all = taken(bytes);
  charge_memory(zone, all);
  piece_ = kept == Kept::long_time && !huge && bytes >= kPieceFrom;
  void* p = huge     ? map_huge(all)
            : piece_ ? take_huge_piece(all)
                     : std::aligned_alloc(kAlignment, all);
  if (p == nullptr) {
    release_memory(zone, all);
    throw OutOfMemory(
        fmt::format(
            "[base.AlignedBuffer] the system must have {} for {}, it refused",
            format_bytes(all), zone.name()
        )
    );
  }
  if (!huge && !piece_) std::memset(p, 0, all);
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
      piece_(std::exchange(other.piece_, false)),
      zone_(std::exchange(other.zone_, std::nullopt)) {}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  if (this == &other) return *this;
  free();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  mapped_ = std::exchange(other.mapped_, 0);
  piece_ = std::exchange(other.piece_, false);
  zone_ = std::exchange(other.zone_, std::nullopt);
  return *this;
}

void AlignedBuffer::free() noexcept {
  if (data_ == nullptr) return;
  if (size_ >= kHugeFrom) {
    munmap(data_, mapped_);
  } else if (piece_) {
    free_huge_piece(data_, mapped_);
  } else {
    std::free(data_);
  }
  if (zone_) release_memory(*zone_, mapped_);
  data_ = nullptr;
}

}  // namespace hearth
