#pragma once
// Remembers the ids of short pieces of text. Fixed size, one cache line an
// entry, two entries a bucket, the older one replaced: nothing grows and a
// lookup touches one place. One thread at a time.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

namespace hearth::text {

class PieceCache {
 public:
  static constexpr std::size_t kMaxBytes = 24, kMaxIds = 9;

  struct Key {
    std::uint64_t words[3] = {0, 0, 0};
    std::uint64_t hash = 0;
    std::uint8_t size = 0;
  };
  struct alignas(64) Entry {
    std::uint64_t words[3];
    std::uint8_t size;  // 0: unused
    std::uint8_t count;
    std::int32_t ids[kMaxIds];
  };

  PieceCache();
  void clear();

  // piece has 1 to kMaxBytes bytes; `readable` bytes can be read at its start.
  static Key key_of(const char* piece, std::size_t size, std::size_t readable) {
    Key key;
    if (readable >= kMaxBytes) {
      std::memcpy(key.words, piece, kMaxBytes);
      for (int i = 0; i < 3; ++i) {
        const int keep = static_cast<int>(size) - 8 * i;
        key.words[i] &= keep >= 8   ? ~std::uint64_t{0}
                        : keep <= 0 ? 0
                                    : (std::uint64_t{1} << (8 * keep)) - 1;
      }
    } else {
      std::memcpy(key.words, piece, size);
    }
    key.size = static_cast<std::uint8_t>(size);
    std::uint64_t h = key.words[0] * 0x9E3779B97F4A7C15u ^ size;
    h ^= key.words[1] * 0xC2B2AE3D27D4EB4Fu + (h >> 31);
    h ^= key.words[2] * 0x165667B19E3779F9u + (h >> 29);
    key.hash = h * 0x9E3779B97F4A7C15u;
    return key;
  }

  // nullptr when unknown.
  const Entry* find(const Key& key) const {
    const Entry* bucket = &entries_[bucket_of(key)];
    if (same(bucket[0], key)) return &bucket[0];
    if (same(bucket[1], key)) return &bucket[1];
    return nullptr;
  }
  // count is at most kMaxIds.
  void insert(const Key& key, const std::int32_t* ids, std::size_t count);

 private:
  static constexpr int kBucketBits = 14;
  static constexpr std::size_t kEntries = std::size_t{2} << kBucketBits;
  static bool same(const Entry& entry, const Key& key) {
    return ((entry.words[0] ^ key.words[0]) | (entry.words[1] ^ key.words[1]) |
            (entry.words[2] ^ key.words[2]) |
            std::uint64_t(entry.size ^ key.size)) == 0;
  }
  static std::size_t bucket_of(const Key& key) {
    return static_cast<std::size_t>(key.hash >> (64 - kBucketBits)) * 2;
  }
  std::unique_ptr<Entry[]> entries_;
};

}  // namespace hearth::text
