#pragma once
// Content hashes: fast, the same on every platform, and not cryptographic.
// They find accidents and name equal content; they stop no adversary.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

// XXH64 of bytes that arrive in pieces.
class Hash64 {
 public:
  explicit Hash64(std::uint64_t seed = 0);
  void update(const void* data, std::size_t size);
  void update(std::string_view text) { update(text.data(), text.size()); }
  std::uint64_t digest() const;

 private:
  std::uint64_t seed_, total_ = 0;
  std::array<std::uint64_t, 4> lanes_;
  std::array<unsigned char, 32> pending_{};
};

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed = 0);

struct Hash128 {
  std::uint64_t high = 0, low = 0;
  std::string hex() const;  // 32 lower-case digits
  bool operator==(const Hash128&) const = default;
};

// Two independent 64-bit hashes: wide enough to name content. Fields are
// length-prefixed, so that ("ab", "c") and ("a", "bc") differ.
class ContentHash {
 public:
  void bytes(const void* data, std::size_t size);
  ContentHash& field(std::string_view text);
  ContentHash& field(std::uint64_t value);
  Hash128 digest() const;

 private:
  Hash64 high_{0x6865617274680001ULL}, low_{0};
};

}  // namespace hearth
