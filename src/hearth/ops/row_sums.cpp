#include "hearth/ops/row_sums.h"

#include <algorithm>
#include <cstring>

namespace hearth::ops {

std::size_t row_grain(long dim) {
  return static_cast<std::size_t>(std::max(1L, 16384 / std::max(1L, dim)));
}

RowSums::RowSums(const mx::Stream& stream, long rows, long width)
    : rows_(rows),
      // A whole number of cache lines, so that blocks share none.
      width_((width + 15) / 16 * 16),
      blocks_(std::min(rows, kBlocks)),
      memory_(scratch(
          stream,
          static_cast<std::size_t>(blocks_ * width_) * sizeof(float)
      )) {}

float* RowSums::sums(long block) const {
  return memory_->as<float>().data() + block * width_;
}

void RowSums::for_blocks(
    ThreadPool& pool,
    FunctionRef<void(long, long, float*)> body
) const {
  pool.parallel_for(
      static_cast<std::size_t>(blocks_), 1,
      [&](std::size_t first, std::size_t last) {
        for (auto i = static_cast<long>(first); i < static_cast<long>(last);
             ++i) {
          float* s = sums(i);
          std::memset(s, 0, static_cast<std::size_t>(width_) * sizeof(float));
          body(rows_ * i / blocks_, rows_ * (i + 1) / blocks_, s);
        }
      }
  );
}

void RowSums::total(long offset, long count, float* out) const noexcept {
  std::fill(out, out + count, 0.0f);
  for (long block = 0; block < blocks_; ++block) {
    const float* s = sums(block) + offset;
    for (long i = 0; i < count; ++i) out[i] += s[i];
  }
}

}  // namespace hearth::ops
