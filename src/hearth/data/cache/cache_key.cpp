// The name of a cache: a hash of all that its shards depend on.
#include <vector>

#include <fcntl.h>

#include "hearth/base/file_handle.h"
#include "hearth/data/cache/cache_impl.h"
#include "hearth/data/read/dataset_stream.h"

namespace hearth::data {
namespace {

// Raised when the same input would give other shards than before.
constexpr std::uint64_t kEncodingVersion = 2;

void add_file(ContentHash& hash, const DataFile& file) {
  const auto handle = FileHandle::open(file.path, O_RDONLY | O_CLOEXEC, "read");
  std::vector<std::byte> block(std::size_t{1} << 20);
  std::uint64_t at = 0;
  while (const auto got = handle.read_at(block, at)) {
    hash.bytes(block.data(), got);
    at += got;
  }
  hash.field(at);
  hash.field(static_cast<std::uint64_t>(file.format));
}

}  // namespace

void hash_settings(ContentHash& hash, const CacheSettings& s) {
  const auto& r = s.read;
  const auto& f = r.fields;
  for (const auto* name :
       {&f.text, &f.prompt, &f.completion, &f.messages, &f.tools, &f.chosen,
        &f.rejected, &r.separator}) {
    hash.field(*name);
  }
  if (!f.input.empty()) hash.field("input").field(f.input);
  if (f.system != "system") hash.field("system").field(f.system);
  for (const auto& [from, to] : f.roles) {
    hash.field("role").field(from).field(to);
  }
  // What a bad line does decides whether there are shards, not what is in
  // them.
  hash.field(r.max_line_bytes).field(r.max_text_bytes);
  hash.bytes(&s.valid_share, sizeof s.valid_share);
  hash.field(s.limit).field(s.shard_tokens);
}

void hash_sources(ContentHash& hash, const std::vector<DataSource>& sources) {
  for (const auto& source : sources) {
    hash.field(source.files.size()).field(std::uint64_t{source.held_out});
    for (const auto& file : source.files) add_file(hash, file);
  }
}

namespace {

Hash128 cache_key_of(
    std::uint64_t version,
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ExampleEncoder& encoder
) {
  ContentHash hash;
  hash.field("hearth token cache").field(version);
  const EncodeSettings& e = encoder.settings();
  hash.field(encoder.text().hash().hex());
  hash.field(encoder.chat() ? encoder.chat()->hash().hex() : std::string());
  hash.field(static_cast<std::uint64_t>(e.mask)).field(e.max_tokens);
  hash.field(std::uint64_t{e.add_bos}).field(std::uint64_t{e.add_eos});
  hash_settings(hash, settings);
  hash_sources(hash, sources);
  return hash.digest();
}

}  // namespace

Hash128 cache_key(
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ExampleEncoder& encoder
) {
  return cache_key_of(kEncodingVersion, sources, settings, encoder);
}

Hash128 former_cache_key(
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ExampleEncoder& encoder
) {
  return cache_key_of(kEncodingVersion - 1, sources, settings, encoder);
}

}  // namespace hearth::data
