#include "hearth/io/token_shard.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/token_shard_impl.h"

namespace hearth::io {
namespace {

// Far above any real file, low enough that no product of two overflows.
constexpr std::uint64_t kMostItems = std::uint64_t{1} << 48;

void require(bool ok, const std::string& name, std::string_view what) {
  if (!ok) throw FormatError::at(name, 0, what);
}

}  // namespace

TokenShard::TokenShard(const std::string& path) : file_(path), name_(path) {
  bytes_ = file_.bytes();
  open();
}

TokenShard::TokenShard(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)), bytes_(bytes) {
  open();
}

void TokenShard::open() {
  require(
      bytes_.size() >= sizeof(ShardPreamble) + sizeof(ShardTrailer), name_,
      fmt::format("a token shard has at least 128 bytes, got {}", bytes_.size())
  );
  ShardPreamble head;
  ShardTrailer tail;
  std::memcpy(&head, bytes_.data(), sizeof head);
  std::memcpy(&tail, bytes_.data() + bytes_.size() - sizeof tail, sizeof tail);
  require(
      std::string_view(head.magic, 8) == kShardMagic, name_,
      "is not a token shard"
  );
  require(
      head.version == kShardVersion, name_,
      fmt::format(
          "token shard version must be {}, got {}", kShardVersion, head.version
      )
  );
  require(
      std::string_view(tail.magic, 8) == kShardEnd, name_,
      "the token shard is cut short: its trailer is missing"
  );
  require(
      head.id_bytes == 2 || head.id_bytes == 4, name_,
      fmt::format("bytes per id must be 2 or 4, got {}", head.id_bytes)
  );
  require(
      head.flags <= (kHasSpans | kPairs), name_,
      fmt::format("unknown token shard flags {:#x}", head.flags)
  );
  require(
      std::all_of(tail.zero, tail.zero + 3, [](auto z) { return z == 0; }),
      name_, "the token shard's trailer has unknown fields"
  );
  info_ = {head.flags,  head.vocabulary, {head.key_high, head.key_low},
           tail.tokens, tail.documents,  tail.spans};
  id_bytes_ = static_cast<int>(head.id_bytes);
  checksum_ = tail.checksum;
  place_sections();
}

void TokenShard::place_sections() {
  const auto& i = info_;
  require(
      std::max({i.tokens, i.documents, i.spans}) < kMostItems, name_,
      "the token shard's counts are not possible"
  );
  require(
      (i.flags & kPairs) == 0 || i.documents % 2 == 0, name_,
      fmt::format("pairs need an even document count, got {}", i.documents)
  );
  require(
      has_spans() || i.spans == 0, name_, "spans are counted but not flagged"
  );
  std::size_t at = sizeof(ShardPreamble);
  auto take = [&](std::size_t bytes) {
    auto* p = bytes_.data() + std::min(at, bytes_.size());
    at += bytes;
    return p;
  };
  ids_ = take(padded_ids(i.tokens, id_bytes_));
  offsets_ =
      reinterpret_cast<const std::uint64_t*>(take(8 * (i.documents + 1)));
  hashes_ = reinterpret_cast<const std::uint64_t*>(take(8 * i.documents));
  if (has_spans()) {
    span_offsets_ =
        reinterpret_cast<const std::uint64_t*>(take(8 * (i.documents + 1)));
    spans_ = reinterpret_cast<const TokenSpan*>(take(8 * i.spans));
  }
  at += sizeof(ShardTrailer);
  require(
      at == bytes_.size(), name_,
      fmt::format(
          "the token shard must have {} bytes for its counts, got {}", at,
          bytes_.size()
      )
  );
}

std::uint64_t TokenShard::first_token(std::uint64_t document) const {
  if (document >= info_.documents) {
    throw UsageError(
        fmt::format(
            "[io.token_shard] document must be below {}, got {}",
            info_.documents, document
        )
    );
  }
  const std::uint64_t begin = offsets_[document], end = offsets_[document + 1];
  require(
      begin <= end && end <= info_.tokens, name_,
      fmt::format("document {} has impossible offsets", document)
  );
  return begin;
}

std::uint64_t TokenShard::length(std::uint64_t document) const {
  return offsets_[document + 1] - first_token(document);
}

std::uint64_t TokenShard::hash(std::uint64_t document) const {
  first_token(document);
  return hashes_[document];
}

void TokenShard::read(
    std::uint64_t document,
    std::uint64_t begin,
    std::span<std::int32_t> out
) const {
  const std::uint64_t first = first_token(document);
  const std::uint64_t count = offsets_[document + 1] - first;
  if (begin > count || out.size() > count - begin) {
    throw UsageError(
        fmt::format(
            "[io.token_shard] tokens {}..{} must lie in a document of {}",
            begin, begin + out.size(), count
        )
    );
  }
  std::uint32_t largest = 0;
  auto copy = [&](auto* ids) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint32_t id = ids[i];
      largest = std::max(largest, id);
      out[i] = static_cast<std::int32_t>(id);
    }
  };
  const std::byte* from = ids_ + (first + begin) * id_bytes_;
  if (id_bytes_ == 2) {
    copy(reinterpret_cast<const std::uint16_t*>(from));
  } else {
    copy(reinterpret_cast<const std::uint32_t*>(from));
  }
  require(
      out.empty() || largest < info_.vocabulary, name_,
      fmt::format(
          "document {} has token {}, the vocabulary ends at {}", document,
          largest, info_.vocabulary
      )
  );
}

std::span<const TokenSpan> TokenShard::spans(std::uint64_t document) const {
  const std::uint64_t count = length(document);
  if (!has_spans()) return {};
  const std::uint64_t begin = span_offsets_[document];
  const std::uint64_t end = span_offsets_[document + 1];
  bool ok = begin <= end && end <= info_.spans;
  std::uint64_t last = 0;
  for (std::uint64_t i = begin; ok && i < end; ++i) {
    ok = spans_[i].begin >= last && spans_[i].begin < spans_[i].end &&
         spans_[i].end <= count;
    last = spans_[i].end;
  }
  require(
      ok, name_, fmt::format("document {} has impossible loss spans", document)
  );
  return {spans_ + begin, spans_ + end};
}

void TokenShard::verify() const {
  Hash64 hash;
  hash.update(bytes_.data(), bytes_.size() - sizeof(ShardTrailer));
  hash.update(&info_.tokens, 8);
  hash.update(&info_.documents, 8);
  hash.update(&info_.spans, 8);
  require(
      hash.digest() == checksum_, name_,
      "the token shard's checksum does not match its content"
  );
  require(
      offsets_[0] == 0 && offsets_[info_.documents] == info_.tokens, name_,
      "the documents do not cover the tokens"
  );
  std::vector<std::int32_t> ids;
  for (std::uint64_t d = 0; d < info_.documents; ++d) {
    spans(d);
    const std::uint64_t count = length(d);
    constexpr std::uint64_t kStep = 1 << 16;
    for (std::uint64_t at = 0; at < count; at += kStep) {
      ids.resize(std::min(kStep, count - at));
      read(d, at, ids);
    }
  }
}

}  // namespace hearth::io
