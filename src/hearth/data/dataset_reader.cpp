#include "hearth/data/dataset_reader.h"

#include <algorithm>
#include <cstring>

namespace hearth::data {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10;
// A chunk is closed at this size, or before when the buffer runs dry.
constexpr std::size_t kChunk = std::size_t{512} << 10;
constexpr std::size_t kChunkRecords = 4096;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
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
      format_(file.format),
      stream_(open_stream(file.path, from.offset)),
      position_(from) {}

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

bool RecordReader::cut(std::size_t& searched, Cut& out) const {
  return format_ == FileFormat::kJsonl ? cut_line(searched, out)
                                       : cut_text(searched, out);
}

bool RecordReader::cut_line(std::size_t& searched, Cut& out) const {
  const auto newline = buffer_.find('\n', begin_ + searched);
  if (newline != std::string::npos) {
    out = {newline, newline + 1};
    return true;
  }
  searched = buffer_.size() - begin_;
  out = {buffer_.size(), buffer_.size()};
  return at_end_ && searched > 0;
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
    out = {found, found + mark.size()};
    return true;
  }
  if ((have >= need || at_end_) && have > most) {
    const std::string_view text(buffer_.data() + begin_, have);
    const auto at = begin_ + cut_point(text, most / 2, most);
    out = {at, at};
    return true;
  }
  searched = have > mark.size() ? have - mark.size() : 0;
  out = {buffer_.size(), buffer_.size()};
  return at_end_ && have > 0;
}

void RecordReader::take(const Cut& cut, RawChunk& chunk) {
  const char* from = buffer_.data() + begin_;
  const std::string_view all(from, cut.next - begin_);
  std::string_view text(from, cut.end - begin_);
  RawRecord record;
  record.line = position_.line;
  record.too_long =
      format_ == FileFormat::kJsonl && text.size() > settings_.max_line_bytes;
  if (position_.offset == 0 && text.starts_with(kByteOrderMark)) {
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
  record.next = position_;
  record.begin = static_cast<std::uint32_t>(chunk.bytes.size());
  if (!record.too_long) chunk.bytes.append(text);
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

bool RecordReader::next(RawChunk& chunk) {
  chunk.bytes.clear();
  chunk.records.clear();
  std::size_t searched = 0;
  for (;;) {
    Cut found{};
    if (cut(searched, found)) {
      take(found, chunk);
      searched = 0;
    } else if (format_ == FileFormat::kJsonl &&
               buffer_.size() - begin_ > settings_.max_line_bytes) {
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
