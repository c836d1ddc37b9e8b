#include "hearth/text/tokenizer/piece_cache.h"

#include <algorithm>

namespace hearth::text {

static_assert(sizeof(PieceCache::Entry) == 64);

PieceCache::PieceCache() : entries_(std::make_unique<Entry[]>(kEntries)) {}

void PieceCache::clear() {
  std::memset(static_cast<void*>(entries_.get()), 0, kEntries * sizeof(Entry));
}

void PieceCache::insert(
    const Key& key,
    const std::int32_t* ids,
    std::size_t count
) {
  Entry* bucket = &entries_[bucket_of(key)];
  if (bucket[0].size) bucket[1] = bucket[0];
  std::copy_n(key.words, 3, bucket[0].words);
  bucket[0].size = key.size;
  bucket[0].count = static_cast<std::uint8_t>(count);
  std::copy_n(ids, count, bucket[0].ids);
}

}  // namespace hearth::text
