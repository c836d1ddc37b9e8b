#pragma once
// The large tables of a byte-pair tokenizer.json as they lie in memory, so that
// loading it again maps them instead of parsing megabytes. One file a
// tokenizer in the user's cache folder, named by a hash of the source; a file
// that is cut, changed or of another version is refused and made again.
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "hearth/base/hash.h"
#include "hearth/text/tokenizer/tokenizer_parts.h"

namespace hearth::text {

// Sources smaller than this load fast enough without.
inline constexpr std::size_t kCachedSourceBytes = std::size_t{1} << 20;

// The parts of the tokenizer.json whose text is given, from its cache file
// when there is a whole one, else from the text, which writes the file. That
// the file cannot be used or written is told to the log and nothing else.
// The folder is one of the user's cache folder unless it is given.
TokenizerParts read_cached_tokenizer_json(
    std::string_view text,
    const std::string& name,
    const std::string& folder = {}
);

// Where the cache file of a source lies.
std::string tokenizer_cache_file(std::string_view text);

// The bytes of a cache file. `rest` is from read_tokenizer_json.
std::string tokenizer_cache_bytes(
    const TokenizerParts& parts,
    std::string_view rest,
    Hash128 source
);

// Reads such bytes, aligned to 64, which must outlive the parts. Throws
// FormatError that names `name`. What has the right checksum but was never
// written by us gives wrong tokens, never harm.
TokenizerParts parse_tokenizer_cache(
    std::span<const std::byte> bytes,
    Hash128 source,
    const std::string& name
);

// Sets size and checksum in the header of bytes that were edited; for tests.
void seal_tokenizer_cache(std::span<std::byte> bytes);

}  // namespace hearth::text
