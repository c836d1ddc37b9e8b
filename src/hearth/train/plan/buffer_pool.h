#pragma once
// How the array allocator's memory grows over a sequence of takes and drops,
// worked out without allocating anything: a buffer that is given back is kept
// and serves requests of nearly its own size alone, so what a process holds is
// the sum over sizes of the most that were in use at once. Knows bytes alone.
#include <cstddef>
#include <map>
#include <vector>

namespace hearth::train {

class BufferPool {
 public:
  using Id = std::size_t;

  // Bytes as the allocator is asked for them.
  Id take(std::size_t bytes);
  void drop(Id id);

  // Bytes the process holds for buffers, in use or kept.
  std::size_t resident() const { return resident_; }
  // The most bytes that were in use at once.
  std::size_t live_peak() const { return live_peak_; }

 private:
  std::vector<std::size_t> buffers_;
  std::map<std::size_t, int> kept_;  // by size, how many
  std::size_t resident_ = 0, live_ = 0, live_peak_ = 0;
};

}  // namespace hearth::train
