#pragma once
// Token shards: the ids of many documents in one memory-mapped file, where
// each document begins, a hash of each, and which tokens carry loss. Bytes in,
// numbers out; what a token means is `data`'s business.
//
//   preamble 64 bytes: magic, version, bytes per id, flags, vocabulary, key
//   ids      u16 or u32 each, padded to 8 bytes
//   offsets  u64 [documents + 1], in tokens
//   hashes   u64 [documents]
//   span offsets u64 [documents + 1], spans u32 pairs   (with kHasSpans only)
//   trailer  64 bytes: tokens, documents, spans, checksum of all before, magic
//
// Little-endian. A file cut short has no trailer and is refused.
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/atomic_file.h"
#include "hearth/base/hash.h"
#include "hearth/base/mapped_file.h"

namespace hearth::io {

// Tokens [begin, end) of a document.
struct TokenSpan {
  std::uint32_t begin = 0, end = 0;
  bool operator==(const TokenSpan&) const = default;
};

enum TokenShardFlags : std::uint32_t {
  // Without it every token carries loss.
  kHasSpans = 1,
  // Documents 2k and 2k + 1 are the chosen and the rejected one of a pair.
  kPairs = 2,
};

struct TokenShardInfo {
  std::uint32_t flags = 0;
  std::uint32_t vocabulary = 0;  // every id is below it
  Hash128 key;                   // of the cache the shard belongs to
  std::uint64_t tokens = 0, documents = 0, spans = 0;
};

class TokenShard {
 public:
  // Checks structure: sizes, counts, preamble and trailer. What is inside the
  // tables is checked when it is used, or all at once by verify().
  explicit TokenShard(const std::string& path);
  // A shard whose bytes are in memory; they must outlive it.
  TokenShard(std::span<const std::byte> bytes, std::string name);

  const TokenShardInfo& info() const { return info_; }
  std::uint64_t documents() const { return info_.documents; }
  int id_bytes() const { return id_bytes_; }
  const std::string& name() const { return name_; }

  std::uint64_t length(std::uint64_t document) const;
  std::uint64_t hash(std::uint64_t document) const;
  // Copies ids [begin, begin + out.size()) of a document.
  void read(
      std::uint64_t document,
      std::uint64_t begin,
      std::span<std::int32_t> out
  ) const;
  // Empty when the shard has no spans: every token carries loss then.
  std::span<const TokenSpan> spans(std::uint64_t document) const;
  bool has_spans() const { return (info_.flags & kHasSpans) != 0; }

  // Reads everything: checksum, order of the tables, every id.
  void verify() const;
  std::uint64_t checksum() const { return checksum_; }

 private:
  MappedFile file_;
  std::string name_;
  std::span<const std::byte> bytes_;
  TokenShardInfo info_;
  int id_bytes_ = 0;
  std::uint64_t checksum_ = 0;
  const std::byte* ids_ = nullptr;
  const std::uint64_t* offsets_ = nullptr;
  const std::uint64_t* hashes_ = nullptr;
  const std::uint64_t* span_offsets_ = nullptr;
  const TokenSpan* spans_ = nullptr;

  void open();
  void place_sections();
  std::uint64_t first_token(std::uint64_t document) const;
};

// Writes one shard as documents come. Ids stream to disk; only the tables stay
// in memory. The file appears at finish(), whole.
class TokenShardWriter {
 public:
  TokenShardWriter(
      std::string path,
      std::uint32_t vocabulary,
      std::uint32_t flags,
      Hash128 key
  );
  void add(
      std::span<const std::int32_t> ids,
      std::span<const TokenSpan> spans,
      std::uint64_t hash
  );
  // What was written; checksum() is valid after it.
  TokenShardInfo finish();

  std::uint64_t tokens() const { return offsets_.back(); }
  std::uint64_t documents() const { return hashes_.size(); }
  std::uint64_t spans() const { return spans_.size(); }
  std::uint64_t checksum() const { return checksum_; }

 private:
  std::unique_ptr<AtomicFile> file_;
  TokenShardInfo info_;
  int id_bytes_;
  Hash64 hash_;
  std::uint64_t checksum_ = 0;
  std::vector<std::byte> buffer_;
  std::vector<std::uint64_t> offsets_{0}, hashes_, span_offsets_{0};
  std::vector<TokenSpan> spans_;

  void put(const void* data, std::size_t size);
  void flush();
};

}  // namespace hearth::io
