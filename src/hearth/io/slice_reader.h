#pragma once
// Reads slices of a model's tensors one after the other and the next ones
// ahead, so that reading overlaps with the caller's converting. Either a few
// threads read large blocks into a small ring of buffers, or the file's mapping
// is handed out and the system is told what comes next. The memory it takes is
// the ring, or of a mapping the pages of one slice and of those read ahead.
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/io/model_source.h"

namespace hearth::io {

enum class ReadMode : unsigned char {
  mapped,    // the page cache's own pages, nothing is copied
  buffered,  // read through the page cache, which keeps them
  direct,    // read past the page cache, where the file system can
};
std::string_view name_of(ReadMode mode);

// Bytes [begin, begin + bytes) of a tensor's data().
struct Slice {
  const TensorInfo* tensor = nullptr;
  std::size_t begin = 0, bytes = 0;
};

struct SliceReaderOptions {
  ReadMode mode = ReadMode::mapped;
  // Enough to keep a fast drive's queue full; `doctor` measures with as many.
  int readers = 4;
  // For tests: no more than this many bytes a second. 0: as fast as it goes.
  double bytes_per_second = 0;
};

class SliceReader {
 public:
  // Slices of tensors that are not plain (file_source.h) are handed out from
  // data(), whatever the mode. The source must outlive the reader.
  SliceReader(
      const ModelSource& source,
      std::vector<Slice> slices,
      const SliceReaderOptions& options
  );
  ~SliceReader();
  SliceReader(const SliceReader&) = delete;
  SliceReader& operator=(const SliceReader&) = delete;

  // The bytes of the next slice, valid until the next call. Throws IoError
  // when the file cannot be read, FormatError when it has become shorter.
  std::span<const std::byte> next();

  // Time spent in next(), in seconds: waiting for reads that were not done yet,
  // or for pages of a mapping that were not there; giving back what was handed
  // out before; and what the source does to tensors that are not plain.
  double waited() const;
  // What the ring takes; 0 for a mapping.
  std::size_t window_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hearth::io
