#include "hearth/train/plan/buffer_pool.h"

#include <algorithm>

namespace hearth::train {
namespace {

// What the allocator adds for alignment, and how much larger than a request a
// kept buffer may be to serve it.
constexpr std::size_t kAlignment = 64, kPage = 4096;

}  // namespace

BufferPool::Id BufferPool::take(std::size_t bytes) {
  bytes += kAlignment;
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
  buffers_.push_back({given, 1});
  return static_cast<Id>(buffers_.size()) - 1;
}

BufferPool::Id BufferPool::hold(Id id) {
  if (id != kNone) ++buffers_[static_cast<std::size_t>(id)].holders;
  return id;
}

void BufferPool::drop(Id id) {
  if (id == kNone) return;
  Buffer& b = buffers_[static_cast<std::size_t>(id)];
  if (--b.holders == 0) leaving_.push_back(b.bytes);
}

void BufferPool::op() {
  for (const std::size_t bytes : left_) {
    live_ -= bytes;
    ++kept_[bytes];
  }
  left_ = std::move(leaving_);
  leaving_.clear();
}

}  // namespace hearth::train
