#include "hearth/train/step/memory_bound.h"

#include <algorithm>
#include <utility>

#include <mlx/mlx.h>

namespace hearth::train {
namespace {

namespace mx = mlx::core;

// Beyond what must be held at once, so that the device need not wait for the
// host: a share of it, and enough for small steps to hide their launches.
constexpr double kShare = 0.1;
constexpr std::size_t kLeast = std::size_t{512} << 20;

}  // namespace

bool MemoryBound::begin(const Shape& shape) {
  const auto known = needs_.find(shape);
  const bool is_new = known == needs_.end();
  std::size_t bound = 1;
  if (is_new) {
    mx::synchronize();
    mx::clear_cache();
    mx::reset_peak_memory();
  } else {
    const auto more =
        static_cast<std::size_t>(kShare * static_cast<double>(known->second));
    bound = known->second + std::max(more, kLeast);
  }
  const std::size_t before = mx::set_memory_limit(bound);
  if (usual_ == 0) usual_ = before;
  return is_new;
}

void MemoryBound::learnt(const Shape& shape) {
  mx::synchronize();
  needs_[shape] = mx::get_peak_memory();
}

void MemoryBound::lift() {
  if (usual_ > 0) mx::set_memory_limit(std::exchange(usual_, 0));
}

}  // namespace hearth::train
