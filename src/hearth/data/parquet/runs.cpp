#include "hearth/data/parquet/runs.h"

#include <algorithm>
#include <bit>

#include "hearth/base/error.h"

namespace hearth::data::parquet {

unsigned bits_for(std::uint32_t most) {
  return static_cast<unsigned>(std::bit_width(most));
}

void RunReader::begin_run() {
  // Past the values that the last groups had.
  if (packed_) at_ = std::min<std::size_t>(at_ + bit_ / 8, bytes_.size());
  packed_ = false;
  std::uint64_t head = 0;
  for (unsigned shift = 0;; shift += 7) {
    if (at_ == bytes_.size() || shift > 35) {
      throw FormatError("a page has fewer values than it says");
    }
    const auto part = static_cast<unsigned char>(bytes_[at_++]);
    head |= static_cast<std::uint64_t>(part & 0x7F) << shift;
    if (part < 0x80) break;
  }
  packed_ = (head & 1) != 0;
  left_ = packed_ ? (head >> 1) * 8 : head >> 1;
  bit_ = 0;
  if (packed_) return;
  const std::size_t bytes = (width_ + 7) / 8;
  if (bytes > bytes_.size() - at_) {
    throw FormatError("a page has fewer values than it says");
  }
  value_ = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    value_ |= static_cast<std::uint32_t>(byte) << (8 * i);
  }
}

std::uint32_t RunReader::packed_value() {
  std::uint64_t value = 0;
  const std::uint64_t first = at_ + bit_ / 8;
  const unsigned shift = bit_ % 8;
  const unsigned bytes = (shift + width_ + 7) / 8;
  if (first + bytes > bytes_.size()) {
    throw FormatError("a page has fewer values than it says");
  }
  for (unsigned i = 0; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(bytes_[first + i]);
    value |= static_cast<std::uint64_t>(byte) << (8 * i);
  }
  bit_ += width_;
  return static_cast<std::uint32_t>(
      value >> shift & ((std::uint64_t{1} << width_) - 1)
  );
}

std::uint32_t RunReader::next() {
  while (left_ == 0) begin_run();
  --left_;
  return packed_ ? packed_value() : value_;
}

}  // namespace hearth::data::parquet
