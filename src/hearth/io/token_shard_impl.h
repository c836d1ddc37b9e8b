#pragma once
// The two fixed blocks of a token shard, as they lie in the file.
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth::io {

inline constexpr std::string_view kShardMagic = "HRTHTOK1";
inline constexpr std::string_view kShardEnd = "HRTHEND1";
inline constexpr std::uint32_t kShardVersion = 1;

struct ShardPreamble {
  char magic[8];
  std::uint32_t version, id_bytes, flags, vocabulary;
  std::uint64_t key_high, key_low;
  std::uint64_t zero[3];
};
static_assert(sizeof(ShardPreamble) == 64);

struct ShardTrailer {
  std::uint64_t tokens, documents, spans, checksum;
  std::uint64_t zero[3];
  char magic[8];
};
static_assert(sizeof(ShardTrailer) == 64);

inline std::size_t padded_ids(std::uint64_t tokens, std::size_t id_bytes) {
  return (tokens * id_bytes + 7) / 8 * 8;
}

}  // namespace hearth::io
