#pragma once
// Sums over rows that come out the same however many threads share the rows:
// rows are cut into blocks whose number depends on the rows alone, each block
// sums into its own part of scratch memory, and the parts are added in order.
#include <cstddef>
#include <memory>

#include "hearth/base/function_ref.h"
#include "hearth/ops/execution.h"

namespace hearth::ops {

// Rows that make a share of work worth a thread: about 64 KiB of float32.
std::size_t row_grain(long dim);

class RowSums {
 public:
  // Takes scratch of the stream for `width` sums a block: throws OutOfMemory.
  RowSums(const mx::Stream& stream, long rows, long width);
  // Calls body(begin, end, sums) for each block, shared among the pool's
  // threads; sums point to `width` zeros that the body adds to.
  void for_blocks(
      ThreadPool& pool,
      FunctionRef<void(long, long, float*)> body
  ) const;
  // out[i] = sum over blocks of the sums at offset + i.
  void total(long offset, long count, float* out) const noexcept;

 private:
  static constexpr long kBlocks = 64;
  long rows_, width_, blocks_;
  std::shared_ptr<AlignedBuffer> memory_;
  float* sums(long block) const;
};

}  // namespace hearth::ops
