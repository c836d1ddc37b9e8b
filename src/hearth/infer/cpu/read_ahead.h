#pragma once
// What a thread reads next, asked for while it waits for the others. A step of
// few rows reads every weight once and does little else: whenever a thread
// stands at a barrier or norms a row its memory would rest.
#include <array>
#include <cstddef>
#include <span>

namespace hearth::infer {

class ReadAhead {
 public:
  // The most bytes to fetch ahead: they stay in the second-level cache beside
  // what is in use.
  static constexpr std::size_t kMost = std::size_t{128} << 10;
  // Lines that are under way at once: more would make the thread wait.
  static constexpr int kAtOnce = 48;

  // Forgets what was to be read.
  void clear() noexcept { count_ = next_ = 0, room_ = kMost; }
  // After what was added before, in the order of reading; the rest of what is
  // more than kMost, or than kPieces, is left.
  void add(std::span<const std::byte> bytes) noexcept {
    const std::size_t n = bytes.size() < room_ ? bytes.size() : room_;
    if (n == 0 || count_ == kPieces) return;
    pieces_[count_++] = {bytes.data(), bytes.data() + n};
    room_ -= n;
  }
  // Asks for the next lines; false when all were asked for.
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
  // Bytes not asked for yet.
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
  static constexpr int kSecondCache = 2;  // the builtin's word for it

  struct Piece {
    const std::byte *at = nullptr, *end = nullptr;
  };
  std::array<Piece, kPieces> pieces_;
  std::size_t count_ = 0, next_ = 0, room_ = kMost;
};

}  // namespace hearth::infer
