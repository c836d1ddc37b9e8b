#pragma once
// RMS norm and layer norm over the last dimension, alone or with the residual
// addition before them.
#include <optional>
#include <utility>

#include "hearth/ops/op.h"

namespace hearth::ops {

// x / sqrt(mean(x^2) + eps) * w. x is float32 or bfloat16; w is float32 (other
// types are converted) of the last dimension, or absent for 1. The result has
// x's dtype, or out_dtype (float32 x may give bfloat16).
mx::array rms_norm(
    const mx::array& x,
    const std::optional<mx::array>& w,
    float eps,
    std::optional<mx::Dtype> out_dtype = {},
    mx::StreamOrDevice s = {}
);

// (x - mean) / sqrt(var + eps) * w + b, as rms_norm otherwise.
mx::array layer_norm(
    const mx::array& x,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    std::optional<mx::Dtype> out_dtype = {},
    mx::StreamOrDevice s = {}
);

// (h, norm(h)) with h = x + r: the residual stream x and h in float32 (or all
// of it in one dtype), the branch r and the result in r's dtype. h_used =
// false says that nothing reads h, so that MLX's zeros for its gradient are
// not added.
std::pair<mx::array, mx::array> add_rms_norm(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    float eps,
    bool h_used = true,
    mx::StreamOrDevice s = {}
);
// What a norm's result can be made again from, so that it need not be kept for
// the backward pass: the rows before the weight, in the result's dtype, and the
// weight. It takes no gradient.
struct NormAgain {
  mx::array n, w;
};
mx::array norm_again(const NormAgain& from, mx::StreamOrDevice s = {});

struct AddedNorm {
  mx::array h, y;
  std::optional<NormAgain> again;  // where the device kept it
};
// add_rms_norm for a pass that gradients are taken of.
AddedNorm add_rms_norm_kept(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    float eps,
    bool h_used = true,
    mx::StreamOrDevice s = {}
);
std::pair<mx::array, mx::array> add_layer_norm(
    const mx::array& x,
    const mx::array& r,
    const mx::array& w,
    const std::optional<mx::array>& b,
    float eps,
    bool h_used = true,
    mx::StreamOrDevice s = {}
);

// The definitions, in MLX's own ops; any floating dtype.
mx::array rms_norm_reference(
    const mx::array& x,
    const std::optional<mx::array>& w,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s = {}
);
mx::array layer_norm_reference(
    const mx::array& x,
    const std::optional<mx::array>& w,
    const std::optional<mx::array>& b,
    float eps,
    mx::Dtype out_dtype,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
