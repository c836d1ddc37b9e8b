#pragma once
// The rotary embedding as one kernel of ours, which reads the table itself.
#include "hearth/ops/rope/op.h"

namespace hearth::ops {

// Whether the kernel takes them: whole heads, in halves of a multiple of eight.
bool rotate_fits(
    const mx::array& x,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
);

// x rotated, or rotated back.
mx::array rotate_gpu(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    bool back,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
