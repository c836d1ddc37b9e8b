#pragma once
// Rounding weights as an export format will, while they stay trainable: the
// forward value is exactly dequantize(quantize(w)) of that format, the gradient
// passes straight through.
#include "hearth/kernels/quant/format.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

// w[..., cols] float32 or bfloat16; same shape and dtype back. cols must suit
// the format. A group with a NaN or an infinity comes back as NaN.
//
// Affine and symmetric formats run on any device; the others are rounded on the
// CPU whatever the stream.
mx::array fake_quant(
    const mx::array& w,
    const kernels::QuantFormat& format,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
