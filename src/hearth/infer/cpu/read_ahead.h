#pragma once
// Prefetches what a thread reads next, while it waits for the others. A step of
// few rows reads every weight once and does little else, so memory would be
// idle whenever a thread waits at a barrier or computes a norm.
#include <array>
#include <cstddef>
#include <span>

namespace hearth::infer {

class ReadAhead {
 public:
  // The most bytes to prefetch: they must stay in the second-level cache beside
  // what is in use.
  static constexpr std::size_t kMost = std::size_t{128} << 10;
  // Cache lines requested at once; more requests would make the thread wait.
  static constexpr int kAtOnce = 48;

  // Forgets what was to be read.
  void clear() noexcept { count_ = next_ = 0, room_ = kMost; }
  // Adds bytes to be read after those added before. What is beyond kMost bytes
  // or kPieces pieces is left out.
  void add(std::span<const std::byte> bytes) noexcept {
    const std::size_t n = bytes.size() < room_ ? bytes.size() : room_;
    if (n == 0 || count_ == kPieces) return;
    pieces_[count_++] = {bytes.data(), bytes.data() + n};
    room_ -= n;
  }
  // Prefetches the next lines. False when nothing was left.
  bool more(int lines) noexcept {
    while (next_ < count_) {
      Piece& p = pieces_[next_];
      for (; lines > 0 && p.at < p.end; --lines, p.at += kLine) {
        __builtin_prefetch(p.at, 0, kSecondCache);
      }
      if (p.at < p.end) return true;
      ++next_;
    }
    return false;
  }
  // Bytes that are not prefetched yet.
  std::size_t left() const noexcept {
    std::size_t bytes = 0;
    for (std::size_t i = next_; i < count_; ++i) {
      if (pieces_[i].at >= pieces_[i].end) continue;
      bytes += static_cast<std::size_t>(pieces_[i].end - pieces_[i].at);
    }
    return bytes;
  }

 private:
  static constexpr std::size_t kPieces = 3;  // queries, keys and values
  static constexpr std::ptrdiff_t kLine = 64;
  static constexpr int kSecondCache = 2;  // as __builtin_prefetch calls it

  struct Piece {
    const std::byte *at = nullptr, *end = nullptr;
  };
  std::array<Piece, kPieces> pieces_;
  std::size_t count_ = 0, next_ = 0, room_ = kMost;
};

}  // namespace hearth::infer
