#include "hearth/train/step/memory_bound.h"

#include <algorithm>
#include <limits>

#include <mlx/mlx.h>

#include "hearth/ops/pace.h"

namespace hearth::train {
namespace {

namespace mx = mlx::core;

// Beyond what must be held at once, so that the device need not wait for the
// host: a share of it, and enough for small steps to hide their launches.
constexpr double kShare = 0.02;
constexpr std::size_t kLeast = std::size_t{128} << 20;

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
  ops::set_bytes_under_way(bound);
  return is_new;
}

void MemoryBound::learnt(const Shape& shape) {
  mx::synchronize();
  needs_[shape] = mx::get_peak_memory();
}

void MemoryBound::lift() {
  ops::set_bytes_under_way(std::numeric_limits<std::size_t>::max());
}

}  // namespace hearth::train
