#include "hearth/data/read/dataset_utf16.h"

#include <algorithm>
#include <utility>

#include "hearth/text/tokenizer/utf8.h"

namespace hearth::data {
namespace {

constexpr std::uint32_t kReplacement = 0xFFFD;

// A stream with bytes before it that were taken from it to look at them.
class LookedAtStream : public ByteStream {
 public:
  LookedAtStream(std::string bytes, std::unique_ptr<ByteStream> rest)
      : bytes_(std::move(bytes)), rest_(std::move(rest)) {}
  std::size_t read(std::span<char> out) override {
    const std::size_t part = std::min(bytes_.size(), out.size());
    if (part == 0) return rest_->read(out);
    std::copy_n(bytes_.begin(), part, out.begin());
    bytes_.erase(0, part);
    return part;
  }
  std::uint64_t stored_position() const override {
    return rest_->stored_position();
  }

 private:
  std::string bytes_;
  std::unique_ptr<ByteStream> rest_;
};

class Utf16Stream : public ByteStream {
 public:
  Utf16Stream(bool big, std::unique_ptr<ByteStream> units)
      : big_(big), units_(std::move(units)) {}
  std::size_t read(std::span<char> out) override {
    while (taken_ == text_.size() && !at_end_) refill();
    const std::size_t part = std::min(out.size(), text_.size() - taken_);
    std::copy_n(text_.begin() + static_cast<long>(taken_), part, out.begin());
    taken_ += part;
    return part;
  }
  std::uint64_t stored_position() const override {
    return units_->stored_position();
  }

 private:
  bool big_, at_end_ = false;
  std::unique_ptr<ByteStream> units_;
  std::string bytes_;       // read, not yet turned into text
  std::string text_;        // UTF-8
  std::size_t taken_ = 0;   // of text_
  std::uint32_t high_ = 0;  // the first half of a pair; 0: none

  void refill() {
    text_.clear();
    taken_ = 0;
    const std::size_t had = bytes_.size();
    bytes_.resize(had + (std::size_t{64} << 10));
    const auto got = units_->read({bytes_.data() + had, bytes_.size() - had});
    bytes_.resize(had + got);
    at_end_ = got == 0;
    std::size_t at = 0;
    for (; at + 2 <= bytes_.size(); at += 2) {
      const auto first = static_cast<unsigned char>(bytes_[at]);
      const auto second = static_cast<unsigned char>(bytes_[at + 1]);
      add(big_ ? first * 256u + second : second * 256u + first);
    }
    bytes_.erase(0, at);
    if (!at_end_) return;
    // Half a pair, or half a unit, that nothing follows.
    if (high_ != 0 || !bytes_.empty()) text::append_utf8(text_, kReplacement);
    bytes_.clear();
    high_ = 0;
  }

  void add(std::uint32_t unit) {
    const bool low = unit >= 0xDC00 && unit < 0xE000;
    const std::uint32_t high = std::exchange(high_, 0);
    if (low && high != 0) {
      text::append_utf8(
          text_, 0x10000 + ((high - 0xD800) << 10) + (unit - 0xDC00)
      );
      return;
    }
    if (high != 0) text::append_utf8(text_, kReplacement);
    if (unit >= 0xD800 && unit < 0xDC00) {
      high_ = unit;
    } else {
      text::append_utf8(text_, low ? kReplacement : unit);
    }
  }
};

}  // namespace

std::unique_ptr<ByteStream> read_as_utf8(std::unique_ptr<ByteStream> stream) {
  std::string first(2, 0);
  std::size_t have = 0;
  while (have < 2) {
    const auto got = stream->read({first.data() + have, 2 - have});
    if (got == 0) break;
    have += got;
  }
  first.resize(have);
  if (first == "\xFF\xFE" || first == "\xFE\xFF") {
    return std::make_unique<Utf16Stream>(first[0] == '\xFE', std::move(stream));
  }
  return std::make_unique<LookedAtStream>(std::move(first), std::move(stream));
}

}  // namespace hearth::data
