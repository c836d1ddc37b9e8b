#include "hearth/text/tokenizer/tokenizer_cache.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "hearth/base/atomic_file.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/mapped_file.h"
#include "hearth/text/tokenizer/bpe.h"

namespace hearth::text {
namespace {

namespace fs = std::filesystem;

// Raised when the layout of a table, or what makes it, changes.
constexpr std::uint64_t kVersion = 1;
constexpr std::array<char, 8> kMagic = {'H', 'R', 'T', 'H', 'T', 'O', 'K', 'C'};
constexpr std::size_t kAlign = 64;

enum Section : std::size_t {
  kRest,
  kText,
  kPlaces,
  kSlots,
  kMerges,
  kDecodedBytes,
  kDecodedPlaces,
  kSections
};

struct Header {
  std::array<char, 8> magic = kMagic;
  std::uint64_t version = kVersion;
  Hash128 source;
  std::uint64_t size = 0, checksum = 0;
  struct {
    std::uint64_t begin = 0, bytes = 0;
  } sections[kSections];
};

std::uint64_t checksum_of(std::span<const std::byte> bytes) {
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.checksum = 0;
  Hash64 hash;
  hash.update(&header, sizeof header);
  hash.update(bytes.data() + sizeof header, bytes.size() - sizeof header);
  return hash.digest();
}

template <class T>
std::string_view as_text(std::span<const T> items) {
  return {reinterpret_cast<const char*>(items.data()), items.size_bytes()};
}

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name)
      : bytes_(bytes), name_(name) {
    if (bytes.size() < sizeof header_) fail("is cut short");
    std::memcpy(&header_, bytes.data(), sizeof header_);
  }

  void check(Hash128 source) const {
    if (header_.magic != kMagic || header_.version != kVersion) {
      fail("is of another version");
    }
    if (header_.size != bytes_.size()) fail("is cut short");
    if (header_.source != source) fail("is of another tokenizer");
    for (const auto& s : header_.sections) {
      if (s.begin % kAlign != 0 || s.begin > bytes_.size() ||
          s.bytes > bytes_.size() - s.begin) {
        fail("has a section outside of it");
      }
    }
    if (header_.checksum != checksum_of(bytes_)) fail("has a wrong checksum");
  }

  template <class T>
  std::span<const T> array(Section section) const {
    const auto& s = header_.sections[section];
    if (s.bytes % sizeof(T) != 0) fail("has half an entry");
    return {
        reinterpret_cast<const T*>(bytes_.data() + s.begin), s.bytes / sizeof(T)
    };
  }
  std::string_view text(Section section) const {
    return as_text(array<char>(section));
  }

  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at(
        name_, 0, "the tokenizer's cache " + std::string(what)
    );
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& name_;
  Header header_;
};

std::unique_ptr<DecodedBytes> decoded_of(
    const Reader& in,
    const TokenizerParts& parts
) {
  if (!parts.byte_level_decoder) return nullptr;
  auto out = std::make_unique<DecodedBytes>();
  out->bytes = in.text(kDecodedBytes);
  out->places = in.array<std::uint32_t>(kDecodedPlaces);
  const bool fits = out->places.size() == parts.id_limit() + 1 &&
                    std::is_sorted(out->places.begin(), out->places.end()) &&
                    out->places.back() <= out->bytes.size();
  if (!fits) in.fail("has decoded bytes that do not hold together");
  return out;
}

Hash128 source_hash(std::string_view text) {
  return ContentHash().field(kVersion).field(text).digest();
}

// Empty when there is none that can be used.
std::optional<TokenizerParts> read_file(
    const std::string& file,
    Hash128 source
) {
  if (!fs::exists(file)) return std::nullopt;
  try {
    auto mapped = std::make_shared<const MappedFile>(file);
    TokenizerParts parts = parse_tokenizer_cache(mapped->bytes(), source, file);
    parts.storage = std::move(mapped);
    return parts;
  } catch (const Error& e) {
    log_info("{}; it is made again", e.what());
    return std::nullopt;
  }
}

void write_file(const std::string& file, std::string_view bytes) {
  try {
    fs::create_directories(fs::path(file).parent_path());
    write_file_atomically(file, bytes);
  } catch (const std::exception& e) {
    log_debug("the tokenizer's cache is not kept: {}", e.what());
  }
}

std::string file_of(Hash128 source, const std::string& folder) {
  const fs::path place =
      folder.empty() ? fs::path(env::cache_folder()) / "tokenizer-tables"
                     : fs::path(folder);
  return (place / (source.hex() + ".bin")).string();
}

}  // namespace

std::string tokenizer_cache_file(std::string_view text) {
  return file_of(source_hash(text), {});
}

void seal_tokenizer_cache(std::span<std::byte> bytes) {
  if (bytes.size() < sizeof(Header)) return;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.size = bytes.size();
  std::memcpy(bytes.data(), &header, sizeof header);
  header.checksum = checksum_of(bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
}

std::string tokenizer_cache_bytes(
    const TokenizerParts& parts,
    std::string_view rest,
    Hash128 source
) {
  const auto& vocabulary = parts.vocabulary->tables();
  const auto& model = dynamic_cast<const Bpe&>(*parts.model);
  std::array<std::string_view, kSections> sections = {
      rest, vocabulary.text, as_text(vocabulary.places),
      as_text(vocabulary.slots), as_text(model.merges().slots())
  };
  if (parts.decoded) {
    sections[kDecodedBytes] = parts.decoded->bytes;
    sections[kDecodedPlaces] = as_text(parts.decoded->places);
  }
  Header header;
  header.source = source;
  std::string out(sizeof header, '\0');
  for (std::size_t i = 0; i < kSections; ++i) {
    out.resize((out.size() + kAlign - 1) / kAlign * kAlign);
    header.sections[i] = {out.size(), sections[i].size()};
    out += sections[i];
  }
  std::memcpy(out.data(), &header, sizeof header);
  seal_tokenizer_cache(std::as_writable_bytes(std::span(out)));
  return out;
}

TokenizerParts parse_tokenizer_cache(
    std::span<const std::byte> bytes,
    Hash128 source,
    const std::string& name
) {
  const Reader in(bytes, name);
  in.check(source);
  const ReadyTables ready{
      {in.text(kText), in.array<Vocabulary::Place>(kPlaces),
       in.array<Vocabulary::Slot>(kSlots)},
      in.array<PairTable::Slot>(kMerges)
  };
  TokenizerParts parts =
      read_tokenizer_json(in.text(kRest), name, nullptr, &ready);
  if (parts.model->kind() != "BPE") in.fail("has no byte-pair model");
  // Byte-level decoding copies bytes; other decoders look at characters.
  if (!parts.byte_level_decoder && !parts.vocabulary->is_utf8()) {
    in.fail("has a token that is not UTF-8");
  }
  parts.decoded = decoded_of(in, parts);
  return parts;
}

TokenizerParts read_cached_tokenizer_json(
    std::string_view text,
    const std::string& name,
    const std::string& folder
) {
  const Hash128 source = source_hash(text);
  const std::string file = file_of(source, folder);
  if (auto parts = read_file(file, source)) return std::move(*parts);
  std::string rest;
  TokenizerParts parts = read_tokenizer_json(text, name, &rest);
  if (rest.empty()) return parts;
  parts.decode_ahead();
  write_file(file, tokenizer_cache_bytes(parts, rest, source));
  return parts;
}

}  // namespace hearth::text
