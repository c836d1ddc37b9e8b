#pragma once
// The forms of the rotary embedding between which op.cpp chooses. It has
// checked what they are given; positions are int32, the table float32.
#include "hearth/ops/rope/op.h"

namespace hearth::ops {

mx::array rope_cpu(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
);
mx::array rope_gpu(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
