#pragma once
// Shared by the cache's builder, its manifest and its key.
#include "hearth/base/json.h"
#include "hearth/data/cache/cache.h"

namespace hearth::data {

Json shard_to_json(const ShardEntry& shard);
ShardEntry shard_from_json(const Json& json);

// What decides which records are read, and every byte they are read from.
void hash_settings(ContentHash& hash, const CacheSettings& settings);
void hash_sources(ContentHash& hash, const std::vector<DataSource>& sources);

// The key that the version before this one gave to the same data and settings.
Hash128 former_cache_key(
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ExampleEncoder& encoder
);

// Documents beyond the first of equal content, over all shards, in passes of
// bounded memory.
std::uint64_t count_duplicates(
    const std::string& folder,
    const std::vector<ShardEntry>& shards,
    std::size_t hashes_a_pass = std::size_t{4} << 20
);

}  // namespace hearth::data
