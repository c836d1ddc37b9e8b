#include "hearth/io/packed_file.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/page_advice.h"
#include "hearth/io/message_impl.h"
#include "hearth/io/strict_json.h"

namespace hearth::io {
namespace {

constexpr std::string_view kMagic = "HEARTHPK";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kAlign = 64, kEnd = 32;
constexpr std::size_t kBlock = PackedFile::kBlock;

std::uint64_t word_at(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t v = 0;
  std::memcpy(&v, bytes.data() + at, sizeof v);
  return v;
}

std::span<const std::byte> bytes_of(const std::uint64_t& v) {
  return std::as_bytes(std::span(&v, 1));
}
std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::shared_ptr<const PackedFile> PackedFile::open(const std::string& path) {
  return std::make_shared<const PackedFile>(MappedFile(path));
}

PackedFile::PackedFile(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)), bytes_(bytes) {
  read_table();
}

PackedFile::PackedFile(MappedFile file)
    : file_(std::move(file)), name_(file_.path()), bytes_(file_.bytes()) {
  read_table();
}

void PackedFile::fail(std::size_t offset, std::string_view what) const {
  throw FormatError::at_offset(name_, offset, what);
}

void PackedFile::read_table() {
  const std::size_t size = bytes_.size();
  if (size < kAlign + kEnd || text_of(bytes_.first(8)) != kMagic) {
    fail(0, "is not a file of packed weights");
  }
  if (word_at(bytes_, 8) != kVersion) {
    fail(8, fmt::format("must be version {}", kVersion));
  }
  if (text_of(bytes_.last(8)) != kMagic) fail(size, "it was cut short");
  const std::uint64_t begin = word_at(bytes_, size - kEnd);
  const std::uint64_t length = word_at(bytes_, size - kEnd + 8);
  if (begin < kAlign || begin > size - kEnd || length != size - kEnd - begin) {
    fail(size - kEnd, "the table must lie between the entries and the end");
  }
  table_begin_ = begin;
  const std::string_view text = text_of(bytes_.subspan(begin, length));
  if (hash64(text) != word_at(bytes_, size - kEnd + 16)) {
    fail(begin, "the table is not what was written");
  }
  const SortedJson table = parse_strict_json(text, name_, 0, {.max_depth = 8});
  const auto list = [&](const char* key) {
    const auto at = table.find(key);
    if (!table.is_object() || at == table.end() || !at->is_array()) {
      fail(begin, fmt::format("the table must have a list of {}", key));
    }
    return at;
  };
  const auto entries = list("entries"), blocks = list("blocks");
  const auto about = table.find("about");
  if (about == table.end() || !about->is_object()) {
    fail(begin, "the table must say what it is about");
  }
  about_ = Json::parse(about->dump());
  for (const auto& entry : *entries) read_entry(Json::parse(entry.dump()));
  for (const auto& block : *blocks) {
    std::uint64_t hash = 0;
    const std::string hex =
        block.is_string() ? block.get<std::string>() : std::string();
    const auto [end, error] =
        std::from_chars(hex.data(), hex.data() + hex.size(), hash, 16);
    if (hex.size() != 16 || error != std::errc() ||
        end != hex.data() + hex.size()) {
      fail(begin, "a block's hash must be 16 digits");
    }
    blocks_.push_back(hash);
  }
  if (blocks_.size() != (table_begin_ + kBlock - 1) / kBlock) {
    fail(begin, "the table must have a hash for every block");
  }
}

void PackedFile::read_entry(const Json& from) {
  PackedEntry e;
  const auto text = [&](const char* key) {
    const auto at = from.find(key);
    if (!from.is_object() || at == from.end() || !at->is_string()) {
      fail(table_begin_, fmt::format("an entry must have its {}", key));
    }
    return at->get<std::string>();
  };
  const auto number = [&](const Json& v) {
    if (!v.is_number_unsigned()) {
      fail(table_begin_, "an entry's sizes must be whole numbers");
    }
    return v.get<std::uint64_t>();
  };
  e.name = text("name");
  e.form = text("form");
  e.type = text("type");
  const auto shape = from.find("shape");
  if (shape == from.end() || !shape->is_array() || shape->size() > 4) {
    fail(table_begin_, "an entry must have a shape");
  }
  for (const Json& n : *shape) {
    const std::uint64_t v = number(n);
    if (v > INT32_MAX) fail(table_begin_, "an entry's shape is out of range");
    e.shape.push_back(static_cast<std::int64_t>(v));
  }
  e.offset = number(from.value("offset", Json()));
  e.bytes = number(from.value("bytes", Json()));
  const std::uint64_t before =
      entries_.empty() ? kAlign
                       : entries_.back().offset + entries_.back().bytes;
  if (e.offset % kAlign != 0 || e.offset < before + 8 ||
      e.offset > table_begin_ || e.bytes > table_begin_ - e.offset) {
    fail(
        table_begin_,
        fmt::format(
            "entry {} must lie behind the one before", in_quotes(e.name)
        )
    );
  }
  if (word_at(bytes_, e.offset - 8) != e.bytes) {
    fail(
        e.offset - 8,
        fmt::format(
            "entry {} must have its length before it", in_quotes(e.name)
        )
    );
  }
  entries_.push_back(std::move(e));
}

std::vector<double> PackedFile::verify(ThreadPool& pool) const {
  std::vector<double> seconds(blocks_.size());
  std::atomic<std::size_t> next = 0, bad = SIZE_MAX;
  constexpr std::size_t kAhead = 4;  // blocks on their way
  const auto part_at = [&](std::size_t begin) {
    begin = std::min(begin, table_begin_);
    return bytes_.subspan(begin, std::min(kBlock, table_begin_ - begin));
  };
  // Bytes that are in memory need not be read ahead.
  const bool mapped = !file_.bytes().empty();
  for (std::size_t b = 0; mapped && b < kAhead; ++b) {
    expect_pages(part_at(b * kBlock));
  }
  pool.run([&](int) {
    for (std::size_t b = next++; b < blocks_.size(); b = next++) {
      const Clock::time_point start = Clock::now();
      const std::size_t begin = b * kBlock;
      const auto part = part_at(begin);
      if (mapped) {
        expect_pages(part_at(begin + kAhead * kBlock));
        map_pages(part);
      }
      if (hash64(text_of(part)) != blocks_[b]) bad = begin;
      seconds[b] = seconds_since(start);
    }
  });
  if (bad != SIZE_MAX) fail(bad, "a block is not what was written");
  return seconds;
}

PackedFileWriter::PackedFileWriter(const std::string& path) : file_(path) {
  write(bytes_of(kMagic));
  write(bytes_of(kVersion));
  const std::string zeros(kAlign - at_, '\0');
  write(bytes_of(zeros));
}

void PackedFileWriter::write(std::span<const std::byte> bytes) {
  file_.write(bytes);
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kBlock - at_ % kBlock);
    block_.update(bytes.data(), n);
    at_ += n;
    bytes = bytes.subspan(n);
    if (at_ % kBlock != 0) continue;
    blocks_.push_back(block_.digest());
    block_ = Hash64();
  }
}

void PackedFileWriter::add(
    PackedEntry entry,
    std::span<const std::byte> bytes
) {
  const std::size_t data = (at_ + 8 + kAlign - 1) / kAlign * kAlign;
  const std::string zeros(data - 8 - at_, '\0');
  write(bytes_of(zeros));
  const std::uint64_t length = bytes.size();
  write(bytes_of(length));
  entry.offset = at_;
  entry.bytes = bytes.size();
  write(bytes);
  entries_.push_back(std::move(entry));
}

std::size_t PackedFileWriter::finish(const Json& about) {
  if (at_ % kBlock != 0) blocks_.push_back(block_.digest());
  Json table = {{"about", about}};
  table["entries"] = Json::array();
  for (const PackedEntry& e : entries_) {
    table["entries"].push_back(
        {{"name", e.name},
         {"form", e.form},
         {"type", e.type},
         {"shape", e.shape},
         {"offset", e.offset},
         {"bytes", e.bytes}}
    );
  }
  table["blocks"] = Json::array();
  for (const std::uint64_t b : blocks_) {
    table["blocks"].push_back(fmt::format("{:016x}", b));
  }
  const std::string text = to_json_line(table);
  const std::uint64_t begin = at_, length = text.size(), hash = hash64(text);
  file_.write(bytes_of(text));
  for (const std::uint64_t* v : {&begin, &length, &hash}) {
    file_.write(bytes_of(*v));
  }
  file_.write(bytes_of(kMagic));
  file_.commit();
  return begin + length + kEnd;
}

}  // namespace hearth::io
