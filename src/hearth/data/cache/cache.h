#pragma once
// The token cache: a folder of shards and a manifest. The manifest is written
// last, so a folder with one is whole; a folder without is a build that can
// go on. The key names data, tokenizer, template and settings: equal keys mean
// equal shards, byte for byte, however often the build was killed on the way
// and however many threads made it.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/data/cache/cache_report.h"
#include "hearth/data/read/dataset.h"
#include "hearth/data/read/dataset_encode.h"
#include "hearth/io/token_shard.h"

namespace hearth::data {

struct CacheSettings {
  ReadSettings read;
  double valid_share = 0;   // of the records, by content
  std::uint64_t limit = 0;  // records taken from each source; 0: all
  std::uint64_t shard_tokens = std::uint64_t{1} << 25;
};

struct ShardEntry {
  std::string file;  // a plain name in the cache's folder
  std::size_t source = 0;
  Split split = Split::kTrain;
  std::uint64_t documents = 0, tokens = 0, checksum = 0;
};

struct SourceEntry {
  std::string name;
  std::vector<std::string> files;
};

struct CacheManifest {
  std::string key;                       // 32 hexadecimal digits
  std::string tokenizer, chat_template;  // hashes; no template: empty
  // Where those were read from, to find them again.
  std::string tokenizer_path, template_path;
  std::uint32_t vocabulary = 0;
  std::string mask;
  std::vector<SourceEntry> sources;
  std::vector<ShardEntry> shards;
  CacheReport report;

  Json to_json() const;
  // Throws FormatError that names the file.
  static CacheManifest from_json(const Json& json, const std::string& file);
};

// The key of what prepare_cache would build; reads every data file once.
Hash128 cache_key(
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ExampleEncoder& encoder
);

struct PrepareOptions {
  // The cache's folder. Empty: named by its key under the user's cache folder.
  std::string folder;
  int threads = 0;     // 0: one a usable core
  bool force = false;  // a folder made from something else is replaced
  // Called now and then with stored bytes done and in all, and tokens made.
  std::function<void(std::uint64_t, std::uint64_t, std::uint64_t)> progress;
  // Asked often; true makes the build throw Interrupted. It can go on later.
  std::function<bool()> stop;
};

struct PrepareResult {
  std::string folder;
  CacheReport report;
  bool reused = false;   // it was there already
  bool resumed = false;  // an unfinished build was completed
  double seconds = 0;
  std::uint64_t new_bytes = 0;  // of text, tokenised by this call
};

PrepareResult prepare_cache(
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ExampleEncoder& encoder,
    const PrepareOptions& options
);

// The documents of one source and split, in order.
class DocumentSet {
 public:
  struct Place {
    const io::TokenShard* shard = nullptr;
    std::uint64_t index = 0;
  };
  std::uint64_t documents() const { return starts_.back(); }
  std::uint64_t tokens() const { return tokens_; }
  bool pairs() const { return pairs_; }
  Place place(std::uint64_t document) const;
  std::uint64_t length(std::uint64_t document) const;
  // Whether every token of it carries loss, as in plain text.
  bool all_trained(std::uint64_t document) const;

 private:
  friend class TokenCache;
  std::vector<const io::TokenShard*> shards_;
  std::vector<std::uint64_t> starts_{0};
  std::uint64_t tokens_ = 0;
  bool pairs_ = false;
};

class TokenCache {
 public:
  // Throws when the folder is not a whole cache, in one line.
  explicit TokenCache(const std::string& folder);
  const CacheManifest& manifest() const { return manifest_; }
  const std::string& folder() const { return folder_; }
  // One a source; a source may have no document in a split.
  const std::vector<DocumentSet>& sets(Split split) const {
    return split == Split::kTrain ? train_ : valid_;
  }
  // Reads every byte and checks every checksum.
  void verify() const;

 private:
  std::string folder_;
  CacheManifest manifest_;
  std::vector<std::unique_ptr<io::TokenShard>> shards_;
  std::vector<DocumentSet> train_, valid_;
};

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kJournalName = "journal.json";

}  // namespace hearth::data
