#pragma once
// The forms of the small arithmetic between which op.cpp chooses. It has
// checked what they are given.
#include "hearth/base/random.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

mx::array add_cpu(const mx::array& a, const mx::array& b, mx::StreamOrDevice s);
mx::array scale_cpu(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s
);
mx::array cast_cpu(const mx::array& x, mx::Dtype dtype, mx::StreamOrDevice s);
mx::array cast_stochastic_cpu(
    const mx::array& x,
    RandomKey key,
    mx::StreamOrDevice s
);
Arrays fork_cpu(const mx::array& x, int n, mx::StreamOrDevice s);

mx::array add_gpu(const mx::array& a, const mx::array& b, mx::StreamOrDevice s);
mx::array scale_gpu(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s
);
mx::array cast_stochastic_gpu(
    const mx::array& x,
    RandomKey key,
    mx::StreamOrDevice s
);
Arrays fork_gpu(const mx::array& x, int n, mx::StreamOrDevice s);

}  // namespace hearth::ops
