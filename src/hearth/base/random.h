#pragma once
// Counter-based random numbers (Philox 4x32, ten rounds): the nth number of a
// key is a pure function of key and n. A key is folded from what the noise
// belongs to — seed, sample, step, layer — never from the order of calls, so a
// replayed sample sees the same noise, on any machine and thread count.
#include <array>
#include <cstdint>
#include <string_view>

namespace hearth {

class RandomKey {
 public:
  explicit constexpr RandomKey(std::uint64_t seed = 0) : bits_(seed) {}
  // A key for one part of this one: fold(sample).fold(step).
  RandomKey fold(std::uint64_t part) const;
  RandomKey fold(std::string_view name) const;
  std::uint64_t bits() const { return bits_; }

 private:
  std::uint64_t bits_;
};

// Four independent 32-bit words for (key, counter).
std::array<std::uint32_t, 4> random_block(RandomKey key, std::uint64_t counter);

// A key read in order. Its position can be saved and restored.
class RandomStream {
 public:
  explicit RandomStream(RandomKey key, std::uint64_t position = 0)
      : key_(key), position_(position) {}

  std::uint32_t next_u32();
  std::uint64_t next_u64();
  // In [0, n), without bias. n must not be 0.
  std::uint64_t below(std::uint64_t n);
  // In [0, 1), 53 random bits.
  double uniform();
  // Standard normal, the same bits on every platform.
  double normal();

  std::uint64_t position() const { return position_; }

 private:
  RandomKey key_;
  std::uint64_t position_;  // in words
  std::uint64_t block_ = ~std::uint64_t{0};
  std::array<std::uint32_t, 4> words_{};
};

// The standard normal's quantile, in plain IEEE arithmetic and our own
// logarithm, so that no platform's libm has a say. 0 < p < 1.
double normal_quantile(double p);

}  // namespace hearth
