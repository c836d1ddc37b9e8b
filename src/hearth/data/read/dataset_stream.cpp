#include "hearth/data/read/dataset_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fcntl.h>

#include <zlib.h>
#include <zstd.h>

#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/data/read/dataset_utf16.h"

namespace hearth::data {
namespace {

class PlainStream : public ByteStream {
 public:
  PlainStream(FileHandle file, std::uint64_t offset)
      : file_(std::move(file)), position_(offset) {}
  std::size_t read(std::span<char> out) override {
    const auto got = file_.read_at(std::as_writable_bytes(out), position_);
    position_ += got;
    return got;
  }
  std::uint64_t stored_position() const override { return position_; }
  const std::string& path() const { return file_.path(); }

 private:
  FileHandle file_;
  std::uint64_t position_;
};

// The part that both decompressors share: stored bytes in a fixed buffer.
class CompressedStream : public ByteStream {
 public:
  explicit CompressedStream(FileHandle file)
      : file_(std::move(file), 0), buffer_(std::size_t{256} << 10) {}
  std::uint64_t stored_position() const override {
    return file_.stored_position() - (size_ - used_);
  }

 protected:
  // False at the end of the stored file.
  bool refill() {
    used_ = 0;
    size_ = file_.read(buffer_);
    return size_ > 0;
  }
  [[noreturn]] void broken(const char* what) const {
    throw FormatError::at(file_.path(), 0, what);
  }
  PlainStream file_;
  std::vector<char> buffer_;
  std::size_t used_ = 0, size_ = 0;
};

class GzipStream : public CompressedStream {
 public:
  explicit GzipStream(FileHandle file) : CompressedStream(std::move(file)) {
    if (inflateInit2(&z_, 15 + 16) != Z_OK) broken("zlib did not start");
  }
  ~GzipStream() override { inflateEnd(&z_); }
  std::size_t read(std::span<char> out) override {
    const auto want =
        static_cast<uInt>(std::min<std::size_t>(out.size(), 1u << 30));
    z_.next_out = reinterpret_cast<Bytef*>(out.data());
    z_.avail_out = want;
    while (z_.avail_out == want) {
      if (used_ == size_ && !refill()) {
        if (in_member_) broken("the gzip data is cut short");
        break;
      }
      inflate_some();
    }
    return want - z_.avail_out;
  }

 private:
  void inflate_some() {
    z_.next_in = reinterpret_cast<Bytef*>(buffer_.data() + used_);
    z_.avail_in = static_cast<uInt>(size_ - used_);
    in_member_ = true;
    const int code = inflate(&z_, Z_NO_FLUSH);
    used_ = size_ - z_.avail_in;
    if (code == Z_STREAM_END) {
      // Files made by several writers hold several members in a row.
      in_member_ = false;
      inflateReset(&z_);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      broken("the gzip data is broken");
    }
  }
  z_stream z_{};
  bool in_member_ = true;
};

class ZstdStream : public CompressedStream {
 public:
  explicit ZstdStream(FileHandle file)
      : CompressedStream(std::move(file)),
        context_(ZSTD_createDCtx(), ZSTD_freeDCtx) {
    if (!context_) broken("zstd did not start");
    // 128 MiB of window at most, whatever the file asks for.
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, 27);
  }
  std::size_t read(std::span<char> out) override {
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    while (to.pos == 0 && to.size > 0) {
      if (used_ == size_ && !flushing_ && !refill()) {
        if (pending_ != 0) broken("the zstd data is cut short");
        break;
      }
      ZSTD_inBuffer from{buffer_.data(), size_, used_};
      pending_ = ZSTD_decompressStream(context_.get(), &to, &from);
      if (ZSTD_isError(pending_)) broken("the zstd data is broken");
      used_ = from.pos;
      flushing_ = to.pos == to.size && pending_ != 0;
    }
    return to.pos;
  }

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_;
  std::size_t pending_ = 0;
  bool flushing_ = false;
};

bool is_utf16(std::span<const unsigned char> first) {
  return (first[0] == 0xff && first[1] == 0xfe) ||
         (first[0] == 0xfe && first[1] == 0xff);
}

void skip(ByteStream& stream, std::uint64_t bytes) {
  std::vector<char> sink(std::size_t{256} << 10);
  while (bytes > 0) {
    const auto part = std::min<std::uint64_t>(bytes, sink.size());
    const auto got = stream.read(std::span(sink).first(part));
    if (got == 0) return;
    bytes -= got;
  }
}

}  // namespace

std::unique_ptr<ByteStream> open_stream(
    const std::string& path,
    std::uint64_t offset
) {
  auto file = FileHandle::open(path, O_RDONLY | O_CLOEXEC, "read");
  std::array<unsigned char, 4> magic{};
  file.read_at(std::as_writable_bytes(std::span(magic)), 0);
  constexpr std::array<unsigned char, 4> kZstd = {0x28, 0xb5, 0x2f, 0xfd};
  std::unique_ptr<ByteStream> stream;
  if (magic[0] == 0x1f && magic[1] == 0x8b) {
    stream = std::make_unique<GzipStream>(std::move(file));
  } else if (magic == kZstd) {
    stream = std::make_unique<ZstdStream>(std::move(file));
  } else if (path.ends_with(".gz") || path.ends_with(".zst")) {
    throw FormatError::at(
        path, 0, "the name says gzip or zstd, the bytes are neither"
    );
  } else if (is_utf16(magic)) {
    stream = std::make_unique<PlainStream>(std::move(file), 0);
  } else {
    return std::make_unique<PlainStream>(std::move(file), offset);
  }
  stream = read_as_utf8(std::move(stream));
  skip(*stream, offset);
  return stream;
}

}  // namespace hearth::data
