#pragma once
// How far the host may run ahead of a GPU, in bytes. MLX frees what a kernel
// read when the kernel has ended, so a host that sends a whole step at once
// holds a whole step's arrays, twice what the step needs. MLX's own limit
// (mx::set_memory_limit) would hold the host back as well, but gives its cache
// away for it and asks the driver for every array: a quarter of a small step.
#include <cstddef>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Bytes beyond which the host waits at the next pace(). No limit at first.
void set_bytes_under_way(std::size_t bytes);

// x, at whose evaluation on a GPU the host waits while more is held than it may
// be and work that was sent is under way. The gradient paces, too. On a CPU
// x itself: there the pass of the kernels holds the host back.
mx::array pace(const mx::array& x, mx::StreamOrDevice s = {});

}  // namespace hearth::ops
