#include "hearth/base/hash.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

namespace hearth {
namespace {

// Words are read as the host stores them.
static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ULL;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FULL;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ULL;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ULL;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ULL;
constexpr std::size_t kStripe = 32;

template <class T>
T load(const unsigned char* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::uint64_t mix(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

void eat_stripe(std::array<std::uint64_t, 4>& lanes, const unsigned char* p) {
  for (int i = 0; i < 4; ++i) {
    lanes[i] = mix(lanes[i], load<std::uint64_t>(p + 8 * i));
  }
}

std::uint64_t eat_tail(
    std::uint64_t hash,
    const unsigned char* p,
    std::size_t size
) {
  for (; size >= 8; p += 8, size -= 8) {
    hash ^= mix(0, load<std::uint64_t>(p));
    hash = std::rotl(hash, 27) * kPrime1 + kPrime4;
  }
  if (size >= 4) {
    hash ^= load<std::uint32_t>(p) * kPrime1;
    hash = std::rotl(hash, 23) * kPrime2 + kPrime3;
    p += 4, size -= 4;
  }
  for (; size > 0; ++p, --size) {
    hash = std::rotl(hash ^ (*p * kPrime5), 11) * kPrime1;
  }
  return hash;
}

}  // namespace

Hash64::Hash64(std::uint64_t seed)
    : seed_(seed),
      lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Hash64::update(const void* data, std::size_t size) {
  if (size == 0) return;
  auto* p = static_cast<const unsigned char*>(data);
  std::size_t held = total_ % kStripe;
  total_ += size;
  if (held > 0) {
    const std::size_t take = std::min(size, kStripe - held);
    std::memcpy(pending_.data() + held, p, take);
    p += take, size -= take;
    if (held + take < kStripe) return;
    eat_stripe(lanes_, pending_.data());
  }
  for (; size >= kStripe; p += kStripe, size -= kStripe) eat_stripe(lanes_, p);
  if (size > 0) std::memcpy(pending_.data(), p, size);
}

std::uint64_t Hash64::digest() const {
  std::uint64_t hash = seed_ + kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) +
           std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (auto lane : lanes_) hash = (hash ^ mix(0, lane)) * kPrime1 + kPrime4;
  }
  hash = eat_tail(hash + total_, pending_.data(), total_ % kStripe);
  hash = (hash ^ (hash >> 33)) * kPrime2;
  hash = (hash ^ (hash >> 29)) * kPrime3;
  return hash ^ (hash >> 32);
}

std::uint64_t hash64(std::string_view bytes, std::uint64_t seed) {
  Hash64 hash(seed);
  hash.update(bytes);
  return hash.digest();
}

std::string Hash128::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

void ContentHash::bytes(const void* data, std::size_t size) {
  high_.update(data, size);
  low_.update(data, size);
}

ContentHash& ContentHash::field(std::string_view text) {
  field(text.size());
  bytes(text.data(), text.size());
  return *this;
}

ContentHash& ContentHash::field(std::uint64_t value) {
  bytes(&value, sizeof value);
  return *this;
}

Hash128 ContentHash::digest() const {
  return {high_.digest(), low_.digest()};
}

}  // namespace hearth
