#pragma once
// base/random.h's generator in MLX's integer ops, so that a GPU draws the very
// numbers that a CPU does.
#include <array>
#include <cstdint>

#include "hearth/ops/op.h"

namespace hearth::ops {

// RandomKey::fold of each of keys, uint64.
mx::array folded_keys(
    const mx::array& keys,
    std::uint64_t part,
    mx::StreamOrDevice s
);

// The four words of random_block for every pair of a key, uint64, and a
// counter, uint32; the two are broadcast together.
std::array<mx::array, 4> random_words(
    const mx::array& keys,
    const mx::array& counters,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
