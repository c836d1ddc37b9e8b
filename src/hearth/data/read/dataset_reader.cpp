#include "hearth/data/read/dataset_reader.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_array.h"
#include "hearth/data/read/dataset_table.h"

namespace hearth::data {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;
// A chunk is closed at this size, or before when the buffer runs dry.
constexpr std::size_t kChunk = std::size_t{512} << 10;
constexpr std::size_t kChunkRecords = 4096;
// What a file is shows in this much of it.
constexpr std::size_t kBeginning = std::size_t{64} << 10;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

constexpr std::string_view kSpace = " \t\r\n";

bool blank(std::string_view text) {
  return text.find_first_not_of(kSpace) == std::string_view::npos;
}

// Where the JSON value at `at` ends, strings and nesting seen; npos when that
// is not in the text. Whether it is JSON is for others to say.
std::size_t value_end(std::string_view text, std::size_t at) {
  std::size_t depth = 0;
  for (bool quoted = false; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      at += c == '\\';
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == ']' || c == '}')) {
      return at;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return at + 1;
    }
  }
  return std::string_view::npos;
}

// The latest place in [low, high] where text may be cut: after a newline, else
// between two characters.
std::size_t cut_point(
    std::string_view text,
    std::size_t low,
    std::size_t high
) {
  const auto newline = text.rfind('\n', high - 1);
  if (newline != std::string_view::npos && newline + 1 > low) {
    return newline + 1;
  }
  std::size_t at = high;
  for (int i = 0; i < 3 && at > low && (text[at] & 0xC0) == 0x80; ++i) --at;
  return at;
}

}  // namespace

RecordReader::RecordReader(
    const DataFile& file,
    const ReadSettings& settings,
    ReadPosition from
)
    : settings_(settings),
      path_(file.path),
      format_(file.format),
      position_(from) {
  if (is_called(path_, {".parquet"})) {
    rows_ = std::make_unique<parquet::Rows>(path_, from.offset);
    return;
  }
  stream_ = open_stream(path_, from.offset);
  if (format_ == FileFormat::kTable) read_columns();
  if (format_ != FileFormat::kJsonl) return;
  const std::string text = beginning();
  array_ = list_of_records(text, settings.fields);
  member_ = array_ && text.find('{') < *array_;
}

// As much of the file as tells what it is.
std::string RecordReader::beginning() const {
  const auto stream = open_stream(path_);
  std::string text(kBeginning, 0);
  std::size_t have = 0;
  while (have < text.size()) {
    const auto got = stream->read({text.data() + have, text.size() - have});
    if (got == 0) break;
    have += got;
  }
  text.resize(have);
  return text;
}

void RecordReader::read_columns() {
  const std::string text = beginning();
  std::string_view rest = text;
  if (rest.starts_with(kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  const bool tabs = is_called(path_, {".tsv", ".tab"});
  if (tabs) separator_ = '\t';
  const auto end = row_end(rest, 0, separator_);
  if (end == std::string_view::npos && text.size() == kBeginning) {
    throw FormatError::at(
        path_, 1, "a table's first row must name its columns"
    );
  }
  rest = rest.substr(0, end);
  if (!tabs) separator_ = find_separator(rest);
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  columns_ = row_fields(rest, separator_);
}

bool RecordReader::fill() {
  if (at_end_) return false;
  buffer_.erase(0, begin_);
  begin_ = 0;
  const std::size_t had = buffer_.size();
  buffer_.resize(had + kBlock);
  const auto got = stream_->read({buffer_.data() + had, kBlock});
  buffer_.resize(had + got);
  at_end_ = got == 0;
  return !at_end_;
}

bool RecordReader::cut(std::size_t& searched, Cut& out) {
  if (array_) return cut_item(out);
  if (format_ == FileFormat::kTable) return cut_row(out);
  return format_ == FileFormat::kJsonl ? cut_line(searched, out)
                                       : cut_text(searched, out);
}

bool RecordReader::cut_line(std::size_t& searched, Cut& out) const {
  const auto newline = buffer_.find('\n', begin_ + searched);
  if (newline != std::string::npos) {
    out = {begin_, newline, newline + 1};
    return true;
  }
  searched = buffer_.size() - begin_;
  out = {begin_, buffer_.size(), buffer_.size()};
  return at_end_ && searched > 0;
}

bool RecordReader::cut_row(Cut& out) const {
  const auto newline = row_end(buffer_, begin_, separator_);
  if (newline != std::string::npos) {
    out = {begin_, newline, newline + 1};
    return true;
  }
  out = {begin_, buffer_.size(), buffer_.size()};
  return at_end_ && begin_ < buffer_.size();
}

bool RecordReader::cut_text(std::size_t& searched, Cut& out) const {
  const std::size_t most = settings_.max_text_bytes;
  const std::string& mark = settings_.separator;
  const std::size_t have = buffer_.size() - begin_;
  // A separator must begin within the longest document to end it.
  const std::size_t need = most + mark.size();
  const auto found =
      mark.empty() ? std::string::npos : buffer_.find(mark, begin_ + searched);
  if (found != std::string::npos && found - begin_ <= most) {
    out = {begin_, found, found + mark.size()};
    return true;
  }
  if ((have >= need || at_end_) && have > most) {
    const std::string_view text(buffer_.data() + begin_, have);
    const auto at = begin_ + cut_point(text, most / 2, most);
    out = {begin_, at, at};
    return true;
  }
  searched = have > mark.size() ? have - mark.size() : 0;
  out = {begin_, buffer_.size(), buffer_.size()};
  return at_end_ && have > 0;
}

void RecordReader::broken_array(std::size_t at, const char* what) const {
  const auto from = buffer_.begin() + static_cast<long>(begin_);
  const auto line =
      static_cast<long>(position_.line) +
      std::count(from, from + static_cast<long>(at - begin_), '\n');
  throw FormatError::at(path_, line, what);
}

// Cuts out the next item, from where the one before it ended: a comma, or the
// bracket that opens the array, then the item; or the bracket that closes the
// array.
bool RecordReader::cut_item(Cut& out) {
  if (closed_) return false;
  const std::string_view all = buffer_;
  const bool first = position_.offset == 0;
  const auto token = [&](std::size_t from) {
    return std::min(all.find_first_not_of(kSpace, from), all.size());
  };
  if (first && all.size() - begin_ <= *array_) return false;
  std::size_t at = token(begin_ + (first ? *array_ : 0));
  bool closes = !first && at < all.size() && all[at] == ']';
  if (!closes && at < all.size()) {
    if (all[at] != (first ? '[' : ',')) {
      broken_array(at, "a comma must stand between an array's records");
    }
    at = token(at + 1);
    closes = first && at < all.size() && all[at] == ']';
  }
  if (closes) return close_array(token(at + 1), out);
  const std::size_t end = value_end(all, at);
  if (end == std::string_view::npos) {
    if (at_end_) broken_array(at, "the array of records does not end");
    return false;
  }
  if (end == at) broken_array(at, "a record must stand before this");
  out = {at, end, end};
  return true;
}

// What follows the list is judged to the end of the file.
bool RecordReader::close_array(std::size_t at, Cut& out) {
  if (!at_end_ && buffer_.size() - at < kBlock) return false;
  const std::string_view rest = std::string_view(buffer_).substr(at);
  const std::string wrong = wrong_after_list(rest, member_);
  if (!wrong.empty()) broken_array(at, wrong.c_str());
  out = {buffer_.size(), buffer_.size(), buffer_.size()};
  closed_ = true;
  return true;
}

void RecordReader::take(const Cut& cut, RawChunk& chunk) {
  const char* from = buffer_.data() + begin_;
  const std::string_view all(from, cut.next - begin_);
  std::string_view text(buffer_.data() + cut.begin, cut.end - cut.begin);
  RawRecord record;
  const std::string_view before(from, cut.begin - begin_);
  record.line = position_.line;
  record.line += std::count(before.begin(), before.end(), '\n');
  record.too_long =
      format_ != FileFormat::kText && text.size() > settings_.max_line_bytes;
  const bool first = position_.offset == 0;
  if (first && text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  position_.offset += all.size();
  position_.line += std::count(all.begin(), all.end(), '\n');
  begin_ = cut.next;
  if (format_ == FileFormat::kText) {
    for (; text.starts_with('\n'); ++record.line) text.remove_prefix(1);
  }
  while (text.ends_with('\r') || text.ends_with('\n')) text.remove_suffix(1);
  if (!record.too_long && blank(text)) return;
  // A table's first row only names its columns.
  if (first && format_ == FileFormat::kTable) return;
  record.next = position_;
  put(text, record, chunk);
}

void RecordReader::put(
    std::string_view text,
    RawRecord& record,
    RawChunk& chunk
) const {
  const std::size_t begin = chunk.bytes.size();
  record.begin = record.end = static_cast<std::uint32_t>(begin);
  if (format_ == FileFormat::kTable && !record.too_long) {
    const auto fields = row_fields(text, separator_);
    if (!append_row(columns_, fields, chunk.bytes)) {
      record.problem = fmt::format(
          "a row must have {} fields, as the first row has, it has {}",
          columns_.size(), fields.size()
      );
    }
  } else if (!record.too_long) {
    chunk.bytes.append(text);
  }
  record.end = static_cast<std::uint32_t>(chunk.bytes.size());
  chunk.records.push_back(record);
}

void RecordReader::skip_long_line(RawChunk& chunk) {
  RawRecord record;
  record.line = position_.line;
  record.too_long = true;
  record.begin = record.end = static_cast<std::uint32_t>(chunk.bytes.size());
  std::size_t searched = 0;
  Cut cut{};
  bool found;
  while (!(found = cut_line(searched, cut))) {
    position_.offset += buffer_.size() - begin_;
    begin_ = buffer_.size();
    searched = 0;
    if (!fill()) break;
  }
  if (found) {
    position_.offset += cut.next - begin_;
    begin_ = cut.next;
  }
  position_.line += 1;
  record.next = position_;
  chunk.records.push_back(record);
}

bool RecordReader::next_rows(RawChunk& chunk) {
  while (chunk.bytes.size() < kChunk && chunk.records.size() < kChunkRecords) {
    RawRecord record;
    const std::size_t begin = chunk.bytes.size();
    if (!rows_->next(chunk.bytes)) break;
    record.line = rows_->row();
    record.next = {rows_->row(), rows_->row() + 1};
    record.too_long = chunk.bytes.size() - begin > settings_.max_line_bytes;
    if (record.too_long) chunk.bytes.resize(begin);
    record.begin = static_cast<std::uint32_t>(begin);
    record.end = static_cast<std::uint32_t>(chunk.bytes.size());
    chunk.records.push_back(std::move(record));
  }
  return !chunk.records.empty();
}

bool RecordReader::next(RawChunk& chunk) {
  chunk.bytes.clear();
  chunk.records.clear();
  if (rows_) return next_rows(chunk);
  std::size_t searched = 0;
  for (;;) {
    Cut found{};
    if (cut(searched, found)) {
      take(found, chunk);
      searched = 0;
    } else if (format_ != FileFormat::kText &&
               buffer_.size() - begin_ > settings_.max_line_bytes) {
      if (array_) broken_array(begin_, "a record of an array is too long");
      if (format_ == FileFormat::kTable) {
        broken_array(begin_, "a row is too long: is a quote left open?");
      }
      skip_long_line(chunk);
      searched = 0;
    } else if (!chunk.records.empty()) {
      return true;
    } else if (!fill() && begin_ == buffer_.size()) {
      return false;
    }
    if (chunk.bytes.size() >= kChunk || chunk.records.size() >= kChunkRecords) {
      return true;
    }
  }
}

}  // namespace hearth::data
