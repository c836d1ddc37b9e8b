#include "hearth/data/cache/cache.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/cache/cache_impl.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

CacheManifest read_manifest(const std::string& folder) {
  const std::string file = (fs::path(folder) / kManifestName).string();
  if (!fs::exists(file)) {
    const bool unfinished = fs::exists(fs::path(folder) / kJournalName);
    throw UsageError(
        fmt::format(
            "[data.cache] {} {}", folder,
            unfinished ? "is an unfinished token cache"
                       : "is not a token cache: it has no manifest.json"
        ),
        unfinished ? "run `hearth data prepare` again to finish it" : ""
    );
  }
  return CacheManifest::from_json(read_json_file(file), file);
}

void check_shard(
    const io::TokenShard& shard,
    const ShardEntry& entry,
    const CacheManifest& manifest
) {
  const auto& info = shard.info();
  if (info.key.hex() != manifest.key) {
    throw FormatError::at(shard.name(), 0, "the shard is of another cache");
  }
  if (info.documents != entry.documents || info.tokens != entry.tokens ||
      shard.checksum() != entry.checksum ||
      info.vocabulary != manifest.vocabulary) {
    throw FormatError::at(
        shard.name(), 0, "the shard is not the one its manifest describes"
    );
  }
}

}  // namespace

std::uint64_t count_duplicates(
    const std::string& folder,
    const std::vector<ShardEntry>& shards,
    std::size_t hashes_a_pass
) {
  std::uint64_t documents = 0, duplicates = 0;
  for (const auto& s : shards) documents += s.documents;
  const std::uint64_t passes = documents / hashes_a_pass + 1;
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    hashes.clear();
    for (const auto& s : shards) {
      const io::TokenShard shard((fs::path(folder) / s.file).string());
      for (std::uint64_t d = 0; d < shard.documents(); ++d) {
        const std::uint64_t hash = shard.hash(d);
        if (hash % passes == pass) hashes.push_back(hash);
      }
    }
    std::sort(hashes.begin(), hashes.end());
    const auto distinct = std::unique(hashes.begin(), hashes.end());
    duplicates += static_cast<std::uint64_t>(hashes.end() - distinct);
  }
  return duplicates;
}

DocumentSet::Place DocumentSet::place(std::uint64_t document) const {
  if (document >= documents()) {
    throw UsageError(
        fmt::format(
            "[data.cache] document must be below {}, got {}", documents(),
            document
        )
    );
  }
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), document);
  const auto shard = static_cast<std::size_t>(after - starts_.begin()) - 1;
  return {shards_[shard], document - starts_[shard]};
}

std::uint64_t DocumentSet::length(std::uint64_t document) const {
  const Place p = place(document);
  return p.shard->length(p.index);
}

bool DocumentSet::all_trained(std::uint64_t document) const {
  const Place p = place(document);
  if (!p.shard->has_spans()) return true;
  const auto spans = p.shard->spans(p.index);
  return spans.size() == 1 && spans[0].begin == 0 &&
         spans[0].end == p.shard->length(p.index);
}

TokenCache::TokenCache(const std::string& folder)
    : folder_(folder), manifest_(read_manifest(folder)) {
  train_.resize(manifest_.sources.size());
  valid_.resize(manifest_.sources.size());
  for (const auto& entry : manifest_.shards) {
    shards_.push_back(
        std::make_unique<io::TokenShard>(
            (fs::path(folder) / entry.file).string()
        )
    );
    const io::TokenShard& shard = *shards_.back();
    check_shard(shard, entry, manifest_);
    auto& sets = entry.split == Split::kTrain ? train_ : valid_;
    DocumentSet& set = sets[entry.source];
    set.shards_.push_back(&shard);
    set.starts_.push_back(set.starts_.back() + entry.documents);
    set.tokens_ += entry.tokens;
    set.pairs_ = (shard.info().flags & io::kPairs) != 0;
  }
}

void TokenCache::verify() const {
  for (const auto& shard : shards_) shard->verify();
}

}  // namespace hearth::data
