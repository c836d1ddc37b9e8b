#include "hearth/train/plan/buffer_pool.h"

#include <algorithm>

namespace hearth::train {
namespace {

// How much larger than a request a kept buffer may be to serve it.
constexpr std::size_t kPage = 4096;

}  // namespace

BufferPool::Id BufferPool::take(std::size_t bytes) {
  const auto at = kept_.lower_bound(bytes);
  const std::size_t limit = std::min(2 * bytes, bytes + 2 * kPage);
  std::size_t given = bytes;
  if (at != kept_.end() && at->first < limit) {
    given = at->first;
    if (--at->second == 0) kept_.erase(at);
  } else {
    resident_ += bytes;
  }
  live_ += given;
  live_peak_ = std::max(live_peak_, live_);
  buffers_.push_back(given);
  return buffers_.size() - 1;
}

void BufferPool::drop(Id id) {
  live_ -= buffers_[id];
  ++kept_[buffers_[id]];
}

}  // namespace hearth::train
