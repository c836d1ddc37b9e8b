#pragma once
// MLX records what a GPU is to run and hands it over some operations at a time;
// what those read is freed when they have ended. Whoever waits for memory must
// have the rest handed over first, or waits beside it.
#include <mlx/stream.h>

namespace hearth::ops {

// Hands over all that is recorded for the stream. MLX has no public call for
// that: this is its CUDA library's own, by name; without it nothing happens.
void hand_over(mlx::core::Stream s);

}  // namespace hearth::ops
