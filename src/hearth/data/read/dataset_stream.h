#pragma once
// The bytes of a file, decompressed as they are read. Compression is told by
// the file's first bytes, not its name. Memory is a few fixed buffers.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hearth::data {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Up to out.size() bytes; 0 at the end only. Throws FormatError for broken
  // or cut compressed data.
  virtual std::size_t read(std::span<char> out) = 0;
  // Bytes of the stored file taken so far, for progress.
  virtual std::uint64_t stored_position() const = 0;
};

// Starts at `offset` decompressed bytes: a seek in a plain file, a skip in a
// compressed one. An offset past the end gives an empty stream.
std::unique_ptr<ByteStream> open_stream(
    const std::string& path,
    std::uint64_t offset = 0
);

}  // namespace hearth::data
