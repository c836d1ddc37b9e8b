#pragma once
// Writes the shards of one cache, in order, from what the pipeline encodes.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hearth/data/cache/cache.h"
#include "hearth/data/cache/cache_journal_impl.h"
#include "hearth/data/cache/cache_pipeline.h"

namespace hearth::data {

class CacheBuilder {
 public:
  CacheBuilder(
      const std::vector<DataSource>& sources,
      const CacheSettings& settings,
      const ExampleEncoder& encoder,
      const PrepareOptions& options,
      std::string folder,
      Hash128 key
  )
      : sources_(sources),
        settings_(settings),
        encoder_(encoder),
        options_(options),
        folder_(std::move(folder)),
        key_(key),
        shapes_(record_shapes(settings.read.fields)) {
    journal_.key = key.hex();
    for (const auto& s : sources) {
      for (const auto& f : s.files) total_ += f.bytes;
    }
  }

  // Takes up an unfinished build of the same key. True when there was one.
  bool resume();
  void run();
  std::uint64_t new_bytes() const { return new_bytes_; }
  const CacheReport& report() const { return journal_.report; }

 private:
  const std::vector<DataSource>& sources_;
  const CacheSettings& settings_;
  const ExampleEncoder& encoder_;
  const PrepareOptions& options_;
  std::string folder_;
  Hash128 key_;
  Journal journal_;
  std::unique_ptr<io::TokenShardWriter> writers_[2];
  std::string names_[2];
  // The line of each form met, by its shape and the fields that were there.
  std::vector<RecordShape> shapes_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::string> forms_;
  std::uint64_t total_ = 0, before_ = 0, new_bytes_ = 0;

  std::string path(const std::string& name) const {
    return folder_ + "/" + name;
  }
  void clean() const;
  void run_source(const DataSource& source);
  void tell(const DataSource& source, const EncodedChunk& chunk);
  bool take(
      const DataSource& source,
      const DataFile& file,
      EncodedRecord& record
  );
  void add(
      const DataSource& source,
      const EncodedDocument& document,
      int split
  );
  io::TokenShardWriter& writer(const DataSource& source, int split);
  void count_form(const EncodedRecord& record);
  bool full() const;
  void close_shards();
  void write_journal() const;
  void finish();
  [[noreturn]] void refuse_empty_prompts() const;
};

}  // namespace hearth::data
