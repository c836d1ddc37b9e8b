#pragma once
// Arrays over memory of our own, for what outlives a step: weights, optimiser
// state, caches. They are zero-filled, 64-byte aligned, charged to a zone, and
// meant to be updated in place. MLX never donates them.
#include <cstddef>
#include <memory>

#include <mlx/mlx.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/memory.h"

namespace hearth::ops {
namespace mx = mlx::core;

// Throws OutOfMemory. Where a GPU is available MLX's allocator hands out that
// device's buffers, and a leaf is one of those that the host may fill too.
mx::array make_leaf(
    mx::Shape shape,
    mx::Dtype dtype,
    MemoryZone zone,
    AlignedBuffer::Kept kept = AlignedBuffer::Kept::any_time
);

// A leaf over memory that somebody else holds, 64-byte aligned, such as a
// mapped file's: nothing is copied or charged, and nobody may write to it. The
// 8 bytes before it must hold its length, as MLX's allocator has it. On a CPU.
// Throws UsageError when they do not.
mx::array leaf_over(
    const std::byte* data,
    mx::Shape shape,
    mx::Dtype dtype,
    std::shared_ptr<const void> owner
);

}  // namespace hearth::ops
