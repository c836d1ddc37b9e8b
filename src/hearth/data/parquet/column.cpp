#include "hearth/data/parquet/column.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/parquet/thrift.h"
#include "hearth/data/parquet/unpack.h"

namespace hearth::data::parquet {
namespace {

using Type = ThriftReader::Type;

constexpr std::int64_t kMaxPage = std::int64_t{64} << 20;
constexpr std::size_t kShortHead = std::size_t{4} << 10;
constexpr std::size_t kLongHead = std::size_t{8} << 20;

enum PageType { kData = 0, kIndex = 1, kDictionary = 2, kDataSecond = 3 };
enum Encoding {
  kPlain = 0,
  kPlainDictionary = 2,
  kRuns = 3,
  kRunsOfDictionary = 8
};

[[noreturn]] void cut_short() {
  throw FormatError("a page is cut short");
}

std::uint32_t number32(std::string_view bytes) {
  if (bytes.size() < 4) cut_short();
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= static_cast<std::uint32_t>(byte) << (8 * i);
  }
  return value;
}

// What a length of four bytes stands before.
std::string_view take_sized(std::string_view& from) {
  const std::uint32_t size = number32(from);
  if (size > from.size() - 4) cut_short();
  const auto bytes = from.substr(4, size);
  from.remove_prefix(4 + std::size_t{size});
  return bytes;
}

}  // namespace

ColumnReader::ColumnReader(
    const FileHandle& file,
    const Node& leaf,
    ColumnChunk chunk
)
    : file_(file), leaf_(leaf), chunk_(chunk) {
  advance();
}

void ColumnReader::advance() {
  while (page_left_ == 0) {
    if (seen_ >= chunk_.values) {
      at_end_ = true;
      return;
    }
    load_page();
  }
  --page_left_;
  repeated_ = leaf_.repeated > 0 ? repeats_.next() : 0;
  definition_ = leaf_.definition > 0 ? definitions_.next() : 0;
  if (definition_ > leaf_.definition || repeated_ > leaf_.repeated) {
    throw FormatError("a page's levels are broken");
  }
  if (has_value()) read_value();
}

void ColumnReader::read_data_head(
    ThriftReader& in,
    PageHead& head,
    bool second
) {
  for (ThriftReader::Field f; in.next_field(f);) {
    if (f.is(1, Type::kI32)) {
      head.values = in.integer();
    } else if (f.is(second ? 4 : 2, Type::kI32)) {
      head.encoding = in.integer();
    } else if (!second && f.is(3, Type::kI32)) {
      head.definition_encoding = in.integer();
    } else if (!second && f.is(4, Type::kI32)) {
      head.repeated_encoding = in.integer();
    } else if (second && f.is(5, Type::kI32)) {
      head.definition_bytes = in.integer();
    } else if (second && f.is(6, Type::kI32)) {
      head.repeated_bytes = in.integer();
    } else if (second && f.id == 7) {
      head.is_packed = f.type != Type::kFalse;
    } else {
      in.skip(f.type);
    }
  }
}

ColumnReader::PageHead ColumnReader::read_head() {
  for (const std::size_t most : {kShortHead, kLongHead}) {
    raw_.resize(std::min<std::uint64_t>(most, chunk_.bytes - at_));
    raw_.resize(file_.read_at(
        std::as_writable_bytes(std::span(raw_)), chunk_.begin + at_
    ));
    try {
      ThriftReader in(raw_);
      PageHead head;
      for (ThriftReader::Field f; in.next_field(f);) {
        if (f.is(1, Type::kI32)) {
          head.type = in.integer();
        } else if (f.is(2, Type::kI32)) {
          head.unpacked = in.integer();
        } else if (f.is(3, Type::kI32)) {
          head.packed = in.integer();
        } else if (f.type == Type::kStruct && (f.id == 5 || f.id == 7)) {
          read_data_head(in, head, false);
        } else if (f.is(8, Type::kStruct)) {
          read_data_head(in, head, true);
        } else {
          in.skip(f.type);
        }
      }
      at_ += in.position();
      return head;
    } catch (const FormatError&) {
      // Long texts may stand in a head, as what is smallest and largest.
      if (raw_.size() < most || most == kLongHead) throw;
    }
  }
  cut_short();
}

void ColumnReader::read_raw(const PageHead& head) {
  if (head.packed < 0 || head.unpacked < 0 || head.packed > kMaxPage ||
      head.unpacked > kMaxPage || head.values < 0 ||
      static_cast<std::uint64_t>(head.packed) > chunk_.bytes - at_) {
    throw FormatError("a page's size is broken");
  }
  raw_.resize(static_cast<std::size_t>(head.packed));
  const auto got = file_.read_at(
      std::as_writable_bytes(std::span(raw_)), chunk_.begin + at_
  );
  if (got != raw_.size()) cut_short();
  at_ += got;
}

void ColumnReader::load_page() {
  if (at_ >= chunk_.bytes) {
    throw FormatError("a column has fewer values than it says");
  }
  const PageHead head = read_head();
  read_raw(head);
  switch (head.type) {
    case kDictionary:
      return read_dictionary(head);
    case kData:
      begin_first(head);
      break;
    case kDataSecond:
      begin_second(head);
      break;
    case kIndex:
      return;
    default:
      throw FormatError("a page has an unknown type");
  }
  seen_ += head.values;
  page_left_ = head.values;
}

void ColumnReader::read_dictionary(const PageHead& head) {
  unpack(
      chunk_.codec, raw_, static_cast<std::size_t>(head.unpacked),
      dictionary_bytes_
  );
  if (leaf_.type == Physical::kBoolean) cut_short();
  dictionary_.clear();
  has_dictionary_ = true;
  std::string_view rest = dictionary_bytes_;
  for (std::int64_t i = 0; i < head.values; ++i) {
    dictionary_.push_back(plain_value(rest));
  }
}

void ColumnReader::begin_first(const PageHead& head) {
  unpack(chunk_.codec, raw_, static_cast<std::size_t>(head.unpacked), page_);
  std::string_view rest = page_;
  if (leaf_.repeated > 0) {
    if (head.repeated_encoding != kRuns) {
      throw FormatError("levels of an old encoding are not read");
    }
    repeats_ = RunReader(take_sized(rest), bits_for(leaf_.repeated));
  }
  if (leaf_.definition > 0) {
    if (head.definition_encoding != kRuns) {
      throw FormatError("levels of an old encoding are not read");
    }
    definitions_ = RunReader(take_sized(rest), bits_for(leaf_.definition));
  }
  begin_values(head, rest);
}

void ColumnReader::begin_second(const PageHead& head) {
  const auto limit = static_cast<std::int64_t>(raw_.size());
  if (head.repeated_bytes < 0 || head.definition_bytes < 0 ||
      head.repeated_bytes > limit ||
      head.definition_bytes > limit - head.repeated_bytes ||
      head.unpacked < head.repeated_bytes + head.definition_bytes) {
    throw FormatError("a page's levels are broken");
  }
  const auto repeats = static_cast<std::size_t>(head.repeated_bytes);
  const auto levels = repeats + static_cast<std::size_t>(head.definition_bytes);
  const std::string_view raw = raw_;
  const std::string_view packed = raw.substr(levels);
  std::string values;
  // A page without a value may have no packed bytes at all.
  if (!packed.empty()) {
    unpack(
        head.is_packed ? chunk_.codec : 0, packed,
        static_cast<std::size_t>(head.unpacked) - levels, values
    );
  }
  page_.assign(raw.substr(0, levels));
  page_ += values;
  const std::string_view page = page_;
  repeats_ = RunReader(page.substr(0, repeats), bits_for(leaf_.repeated));
  definitions_ = RunReader(
      page.substr(repeats, levels - repeats), bits_for(leaf_.definition)
  );
  begin_values(head, page.substr(levels));
}

void ColumnReader::begin_values(const PageHead& head, std::string_view values) {
  by_index_ = by_run_ = false;
  switch (head.encoding) {
    case kPlain:
      plain_ = values;
      bit_ = 0;
      return;
    case kRuns:
      if (leaf_.type != Physical::kBoolean) break;
      by_run_ = true;
      indices_ =
          values.empty() ? RunReader() : RunReader(take_sized(values), 1);
      return;
    case kPlainDictionary:
    case kRunsOfDictionary: {
      if (!has_dictionary_) throw FormatError("a page lacks its dictionary");
      by_index_ = true;
      // All of its entries may be missing.
      const unsigned width =
          values.empty() ? 0 : static_cast<unsigned char>(values[0]);
      if (width > 32) throw FormatError("a page's indices are broken");
      indices_ =
          values.empty() ? RunReader() : RunReader(values.substr(1), width);
      return;
    }
    default:
      break;
  }
  throw FormatError(
      fmt::format(
          "column \"{}\" has encoding {}, and plain values, runs and "
          "dictionaries are read: pandas or pyarrow write it anew",
          leaf_.name, head.encoding
      )
  );
}

std::string_view ColumnReader::plain_value(std::string_view& from) const {
  std::size_t width = 0;
  switch (leaf_.type) {
    case Physical::kBytes:
      return take_sized(from);
    case Physical::kFixedBytes:
      width = leaf_.width;
      break;
    case Physical::kInt32:
    case Physical::kFloat:
      width = 4;
      break;
    case Physical::kInt96:
      width = 12;
      break;
    default:
      width = 8;
  }
  if (width > from.size()) cut_short();
  const auto bytes = from.substr(0, width);
  from.remove_prefix(width);
  return bytes;
}

void ColumnReader::read_value() {
  if (by_index_) {
    const std::uint32_t index = indices_.next();
    if (index >= dictionary_.size()) {
      throw FormatError("an index is beyond its dictionary");
    }
    value_ = dictionary_[index];
    return;
  }
  if (leaf_.type != Physical::kBoolean) {
    value_ = plain_value(plain_);
    return;
  }
  if (by_run_) {
    truth_ = indices_.next() != 0;
  } else {
    if (plain_.empty()) cut_short();
    truth_ = static_cast<unsigned char>(plain_[0]) >> bit_ & 1;
    if (++bit_ == 8) plain_.remove_prefix(1), bit_ = 0;
  }
  value_ = {reinterpret_cast<const char*>(&truth_), 1};
}

}  // namespace hearth::data::parquet
