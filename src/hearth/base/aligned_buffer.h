#pragma once
// Memory of our own for weights, optimiser state and scratch: 64-byte aligned,
// charged to a zone, on huge pages where that pays.
#include <cstddef>
#include <optional>
#include <span>

#include "hearth/base/memory.h"

namespace hearth {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;
  // From this size on a buffer asks for huge pages.
  static constexpr std::size_t kHugeFrom = std::size_t{4} << 20;

  // From this size on, a buffer that is kept for a long time and read often is
  // placed beside others of its kind on huge pages (huge_pieces.h).
  enum class Kept : unsigned char { any_time, long_time };
  static constexpr std::size_t kPieceFrom = std::size_t{64} << 10;

  AlignedBuffer() = default;
  // The bytes that a buffer of that size really takes, which is what it is
  // charged.
  static std::size_t taken(std::size_t bytes);
  // Zero-filled. Throws OutOfMemory when budget or system refuse.
  AlignedBuffer(MemoryZone zone, std::size_t bytes, Kept kept = Kept::any_time);
  ~AlignedBuffer();
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;

  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }

  template <class T>
  std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const noexcept {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0, mapped_ = 0;
  bool piece_ = false;
  std::optional<MemoryZone> zone_;
  void free() noexcept;
};

}  // namespace hearth
