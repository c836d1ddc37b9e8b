#pragma once
// How a model's bytes come in: by mapping or by reading, whichever suits the
// disk and the memory there is.
#include <cstddef>
#include <string>

#include "hearth/io/slice_reader.h"

namespace hearth::models {

struct ReadFacts {
  std::size_t bytes = 0;             // of the tensors
  std::size_t resident = 0;          // of them in the page cache now
  std::size_t free_memory = 0;       // 0: not known
  double disk_bytes_per_second = 0;  // as `doctor` measured; 0: it has not
};

struct ReadChoice {
  io::ReadMode mode = io::ReadMode::mapped;
  std::string why;
};

ReadChoice choose_read(const ReadFacts& facts);

// How much of the source's plain tensors lies in the page cache, by samples.
std::size_t resident_bytes(const io::ModelSource& source);

}  // namespace hearth::models
