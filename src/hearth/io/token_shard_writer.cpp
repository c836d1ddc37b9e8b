// TokenShardWriter: documents to a shard file.
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/token_shard.h"
#include "hearth/io/token_shard_impl.h"

namespace hearth::io {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

void check_document(
    std::span<const std::int32_t> ids,
    std::span<const TokenSpan> spans,
    std::uint32_t vocabulary
) {
  std::uint32_t largest = 0;
  for (auto id : ids) largest = std::max(largest, std::uint32_t(id));
  if (!ids.empty() && largest >= vocabulary) {
    throw UsageError(
        fmt::format(
            "[io.token_shard_writer] ids must be below {}, got {}", vocabulary,
            largest
        )
    );
  }
  std::uint32_t last = 0;
  for (const auto& span : spans) {
    if (span.begin < last || span.begin >= span.end || span.end > ids.size()) {
      throw UsageError(
          fmt::format(
              "[io.token_shard_writer] spans must be ordered, disjoint and "
              "within "
              "{} tokens, got {}..{}",
              ids.size(), span.begin, span.end
          )
      );
    }
    last = span.end;
  }
}

}  // namespace

TokenShardWriter::TokenShardWriter(
    std::string path,
    std::uint32_t vocabulary,
    std::uint32_t flags,
    Hash128 key
)
    : file_(std::make_unique<AtomicFile>(std::move(path))),
      info_{flags, vocabulary, key, 0, 0, 0},
      id_bytes_(vocabulary <= 65536 ? 2 : 4) {
  ShardPreamble head{};
  std::memcpy(head.magic, kShardMagic.data(), 8);
  head.version = kShardVersion;
  head.id_bytes = static_cast<std::uint32_t>(id_bytes_);
  head.flags = flags;
  head.vocabulary = vocabulary;
  head.key_high = key.high;
  head.key_low = key.low;
  put(&head, sizeof head);
}

void TokenShardWriter::put(const void* data, std::size_t size) {
  auto* p = static_cast<const std::byte*>(data);
  buffer_.insert(buffer_.end(), p, p + size);
  if (buffer_.size() >= kBuffer) flush();
}

void TokenShardWriter::flush() {
  hash_.update(buffer_.data(), buffer_.size());
  file_->write(buffer_);
  buffer_.clear();
}

void TokenShardWriter::add(
    std::span<const std::int32_t> ids,
    std::span<const TokenSpan> spans,
    std::uint64_t hash
) {
  check_document(ids, spans, info_.vocabulary);
  const std::size_t at = buffer_.size();
  buffer_.resize(at + ids.size() * id_bytes_);
  if (id_bytes_ == 2) {
    auto* out = buffer_.data() + at;
    for (auto id : ids) {
      const auto narrow = static_cast<std::uint16_t>(id);
      std::memcpy(out, &narrow, 2);
      out += 2;
    }
  } else if (!ids.empty()) {
    std::memcpy(buffer_.data() + at, ids.data(), ids.size() * 4);
  }
  offsets_.push_back(offsets_.back() + ids.size());
  hashes_.push_back(hash);
  if (info_.flags & kHasSpans) {
    spans_.insert(spans_.end(), spans.begin(), spans.end());
    span_offsets_.push_back(spans_.size());
  }
  if (buffer_.size() >= kBuffer) flush();
}

TokenShardInfo TokenShardWriter::finish() {
  info_.tokens = tokens();
  info_.documents = documents();
  info_.spans = spans_.size();
  const std::uint64_t zero = 0;
  put(&zero, padded_ids(info_.tokens, id_bytes_) - info_.tokens * id_bytes_);
  put(offsets_.data(), offsets_.size() * 8);
  put(hashes_.data(), hashes_.size() * 8);
  if (info_.flags & kHasSpans) {
    put(span_offsets_.data(), span_offsets_.size() * 8);
    put(spans_.data(), spans_.size() * 8);
  }
  flush();
  hash_.update(&info_.tokens, 8);
  hash_.update(&info_.documents, 8);
  hash_.update(&info_.spans, 8);
  checksum_ = hash_.digest();
  ShardTrailer tail{
      info_.tokens, info_.documents, info_.spans, checksum_, {}, {}
  };
  std::memcpy(tail.magic, kShardEnd.data(), 8);
  file_->write(std::as_bytes(std::span(&tail, 1)));
  file_->commit();
  file_.reset();
  return info_;
}

}  // namespace hearth::io
