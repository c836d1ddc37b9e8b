#pragma once
// How the array allocator's memory grows over a sequence of ops, worked out
// without allocating anything: a buffer that is given back is kept and serves
// requests of nearly its own size alone, so what a process holds is the sum
// over sizes of the most that were in use at once. Knows bytes alone.
#include <cstddef>
#include <map>
#include <vector>

namespace hearth::train {

class BufferPool {
 public:
  using Id = int;
  static constexpr Id kNone = -1;

  // A new buffer with one holder.
  Id take(std::size_t bytes);
  Id hold(Id id);
  // One holder fewer. The last one's memory comes back when the op after the
  // present one is launched, as one op runs ahead of the one that computes.
  // kNone is allowed.
  void drop(Id id);
  // Ends an op: its buffers are taken, what it used last is dropped.
  void op();

  // Bytes the process holds for buffers, in use or kept.
  std::size_t resident() const { return resident_; }
  // The most bytes that were in use at once.
  std::size_t live_peak() const { return live_peak_; }

 private:
  struct Buffer {
    std::size_t bytes;
    int holders;
  };
  std::vector<Buffer> buffers_;
  std::map<std::size_t, int> kept_;  // by size, how many
  std::vector<std::size_t> leaving_, left_;
  std::size_t resident_ = 0, live_ = 0, live_peak_ = 0;
};

}  // namespace hearth::train
