#pragma once
// Noise that belongs to a token, not to a call: the same token at the same step
// gets the same noise whatever batch it is in.
#include <cstdint>
#include <vector>

#include "hearth/ops/op.h"

namespace hearth::ops {

// x[..., dim], float32 or bfloat16: each element is 0 with probability rate,
// else divided by 1 - rate. `keys`, uint64, has one key for each row of x;
// `layer` tells the uses of one key apart. rate is in [0, 1).
mx::array dropout(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float rate,
    mx::StreamOrDevice s = {}
);

// x + magnitude * u with u uniform in [-1, 1), of the same keys. Its gradient
// is x's.
mx::array add_noise(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float magnitude,
    mx::StreamOrDevice s = {}
);

// The definitions. The keys must be evaluated or be so at no cost: the host
// draws the words.
mx::array dropout_reference(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float rate,
    mx::StreamOrDevice s = {}
);
mx::array add_noise_reference(
    const mx::array& x,
    const mx::array& keys,
    std::uint64_t layer,
    float magnitude,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
