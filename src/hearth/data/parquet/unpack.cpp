#include "hearth/data/parquet/unpack.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include "hearth/base/error.h"

namespace hearth::data::parquet {
namespace {

bool unpack_gzip(std::string_view packed, std::size_t size, std::string& out) {
  z_stream z{};
  // 32: gzip's or zlib's head, whichever stands there.
  if (inflateInit2(&z, 15 + 32) != Z_OK) return false;
  out.resize(size);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(size);
  const int code = inflate(&z, Z_FINISH);
  const bool whole = code == Z_STREAM_END && z.avail_out == 0;
  inflateEnd(&z);
  return whole;
}

bool unpack_zstd(std::string_view packed, std::size_t size, std::string& out) {
  out.resize(size);
  const std::size_t got =
      ZSTD_decompress(out.data(), size, packed.data(), packed.size());
  return ZSTD_isError(got) == 0 && got == size;
}

// Walks through Snappy's elements: stretches of new bytes, and copies of what
// came before.
class SnappyReader {
 public:
  SnappyReader(std::string_view packed, std::string& out)
      : in_(packed), out_(out) {}

  bool read(std::size_t size) {
    std::uint64_t stated = 0;
    if (!varint(stated) || stated != size) return false;
    out_.clear();
    out_.reserve(size);
    while (at_ < in_.size()) {
      const auto tag = static_cast<unsigned char>(in_[at_++]);
      const bool fine = (tag & 3) == 0 ? literal(tag) : copy(tag);
      if (!fine || out_.size() > size) return false;
    }
    return out_.size() == size;
  }

 private:
  std::string_view in_;
  std::string& out_;
  std::size_t at_ = 0;

  bool number(std::size_t bytes, std::size_t& out) {
    if (bytes > in_.size() - at_) return false;
    out = 0;
    for (std::size_t i = 0; i < bytes; ++i) {
      const auto byte = static_cast<unsigned char>(in_[at_ + i]);
      out |= static_cast<std::size_t>(byte) << (8 * i);
    }
    at_ += bytes;
    return true;
  }
  bool varint(std::uint64_t& out) {
    for (unsigned shift = 0; shift < 35 && at_ < in_.size(); shift += 7) {
      const auto part = static_cast<unsigned char>(in_[at_++]);
      out |= static_cast<std::uint64_t>(part & 0x7F) << shift;
      if (part < 0x80) return true;
    }
    return false;
  }
  bool literal(unsigned tag) {
    // Up to 60 the length stands in the tag, else in the next bytes.
    std::size_t length = tag >> 2;
    if (length >= 60 && !number(length - 59, length)) return false;
    ++length;
    if (length > in_.size() - at_) return false;
    out_.append(in_.substr(at_, length));
    at_ += length;
    return true;
  }
  bool copy(unsigned tag) {
    std::size_t back = 0, length = (tag >> 2) + 1;
    if ((tag & 3) == 1) {
      length = (tag >> 2 & 7) + 4;
      if (!number(1, back)) return false;
      back |= std::size_t{tag >> 5} << 8;
    } else if (!number((tag & 3) == 2 ? 2 : 4, back)) {
      return false;
    }
    if (back == 0 || back > out_.size()) return false;
    // May reach into what it writes itself: a byte at a time.
    for (std::size_t i = 0; i < length; ++i) {
      out_.push_back(out_[out_.size() - back]);
    }
    return true;
  }
};

}  // namespace

bool unpack_snappy(
    std::string_view packed,
    std::size_t size,
    std::string& out
) {
  return SnappyReader(packed, out).read(size);
}

void unpack(
    std::int64_t codec,
    std::string_view packed,
    std::size_t size,
    std::string& out
) {
  bool whole = false;
  switch (codec) {
    case 0:
      out = packed;
      whole = packed.size() == size;
      break;
    case 1:
      whole = unpack_snappy(packed, size, out);
      break;
    case 2:
      whole = unpack_gzip(packed, size, out);
      break;
    case 6:
      whole = unpack_zstd(packed, size, out);
      break;
    default:
      throw FormatError(
          fmt::format(
              "it is packed by codec {} (3 LZO, 4 Brotli, 5 and 7 LZ4), and "
              "Snappy, gzip and zstd are read",
              codec
          )
      );
  }
  if (!whole) throw FormatError("a page's bytes are broken");
}

}  // namespace hearth::data::parquet
