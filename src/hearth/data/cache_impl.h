#pragma once
// Shared by the cache's builder and its manifest.
#include "hearth/base/json.h"
#include "hearth/data/cache.h"

namespace hearth::data {

Json shard_to_json(const ShardEntry& shard);
ShardEntry shard_from_json(const Json& json);

// Documents beyond the first of equal content, over all shards, in passes of
// bounded memory.
std::uint64_t count_duplicates(
    const std::string& folder,
    const std::vector<ShardEntry>& shards,
    std::size_t hashes_a_pass = std::size_t{4} << 20
);

}  // namespace hearth::data
