#pragma once
// How far a build of a cache has come: what is on disk and counted, and where
// in the input to go on. Written whenever shards are closed.
#include "hearth/data/cache/cache.h"
#include "hearth/data/cache/cache_pipeline.h"

namespace hearth::data {

struct Journal {
  std::string key;
  std::size_t source = 0;
  InputPosition position;
  std::uint64_t taken = 0;  // records of the current source
  int pairs = -1;           // of the current source; -1: not known yet
  std::vector<ShardEntry> shards;
  CacheReport report;

  void next_source();
  Json to_json() const;
  static Journal from_json(const Json& json);
};

}  // namespace hearth::data
