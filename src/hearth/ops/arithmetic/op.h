#pragma once
// The small arithmetic of a training step, so that none of MLX's own
// element-wise CPU ops is in its hot path: they are scalar and slow in
// bfloat16. float32 and bfloat16.
#include <span>

#include "hearth/base/random.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

// a + b of one shape; b may be bfloat16 where a is float32. The result has a's
// dtype.
mx::array add(
    const mx::array& a,
    const mx::array& b,
    mx::StreamOrDevice s = {}
);
// s * x for a scalar array s, known when it runs. Only x has a gradient.
mx::array scale(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s = {}
);
// To float32 or bfloat16, to nearest, ties to even. The gradient is cast back.
mx::array cast(const mx::array& x, mx::Dtype dtype, mx::StreamOrDevice s = {});
// float32 to bfloat16, up or down at random so that the mean is x. The same
// key gives the same result on every machine. The gradient passes as if the
// cast were exact.
mx::array cast_stochastic(
    const mx::array& x,
    RandomKey key,
    mx::StreamOrDevice s = {}
);
// x for n uses, whose gradients are added by our kernel, in the order of uses:
// MLX adds the gradients of a shared array with its own.
Arrays fork(const mx::array& x, int n, mx::StreamOrDevice s = {});

// The definitions, in MLX's own ops; any floating dtype.
mx::array add_reference(
    const mx::array& a,
    const mx::array& b,
    mx::StreamOrDevice s = {}
);
mx::array scale_reference(
    const mx::array& x,
    const mx::array& factor,
    mx::StreamOrDevice s = {}
);
Arrays fork_reference(const mx::array& x, int n, mx::StreamOrDevice s = {});

// into += factor * x in place, on the stream's thread, when all that was sent
// there has run. into is a float32 leaf; both must be evaluated.
void accumulate(mx::array& into, const mx::array& x, float factor);
// The sum of squares over all arrays, which must be evaluated. It does not
// depend on the number of threads.
double sum_squares(std::span<const mx::array> arrays);
// Scales evaluated arrays in place.
void scale_in_place(std::span<mx::array> arrays, float factor);

}  // namespace hearth::ops
