#pragma once
// Arrays over memory of our own, for what outlives a step: weights, optimiser
// state, caches. They are zero-filled, 64-byte aligned, charged to a zone, and
// meant to be updated in place. MLX never donates them.
#include <mlx/mlx.h>

#include "hearth/base/memory.h"

namespace hearth::ops {
namespace mx = mlx::core;

// Throws OutOfMemory. Where a GPU is available MLX's allocator hands out that
// device's buffers and a leaf is an evaluated MLX array instead.
mx::array make_leaf(mx::Shape shape, mx::Dtype dtype, MemoryZone zone);

}  // namespace hearth::ops
