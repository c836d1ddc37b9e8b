#pragma once
// The addition to the residual stream and the RMS norm behind it as one kernel,
// and their gradient as another.
#include "hearth/ops/norm/faces_impl.h"

namespace hearth::ops {

// Whether the kernels take rows of these: eight values at once, and few enough
// for the registers of 32 threads.
bool add_rms_fits(
    const NormConfig& c,
    const NormInputs& in,
    mx::Dtype y,
    mx::StreamOrDevice s
);

// h, norm(h) and, with c.keep, n of NormAgain and its rows' scales.
Arrays add_rms_gpu(
    const NormConfig& c,
    const NormInputs& in,
    mx::StreamOrDevice s
);

// Whether the kernel makes it again on that stream; MLX's ops do elsewhere.
bool norm_again_fits(const NormAgain& from, mx::StreamOrDevice s);
mx::array norm_again_gpu(const NormAgain& from, mx::StreamOrDevice s);

}  // namespace hearth::ops
