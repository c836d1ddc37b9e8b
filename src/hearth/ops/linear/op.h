#pragma once
// The linear layer.
#include <memory>
#include <optional>

#include "hearth/ops/gate/op.h"
#include "hearth/ops/linear/packed_weight.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

// x[..., k] w[n, k]^T + bias[n], in x's dtype: float32, or bfloat16 summed in
// float32. w is float32 or bfloat16 and is rounded to x's dtype; bias is
// float32 (other types are converted). The gradients of w and bias are float32.
//
// packed, where given, must hold w's present values: it is read in w's place on
// a CPU stream and saves packing w in every call. It is ignored when it was
// made for another kernel table than the one in use. Where it holds the forward
// order alone, the input gradient packs w itself.
mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias = {},
    std::shared_ptr<const PackedWeight> packed = nullptr,
    mx::StreamOrDevice s = {}
);

// residual[..., n] + scale * x[..., k] w[n, k]^T, rounded once and written
// once: what an adapter adds to a layer's output, or a layer to a stream that
// no norm op adds to. residual has x's dtype; its buffer is taken where nothing
// else needs it. All three have gradients.
mx::array linear_add(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale = 1,
    std::shared_ptr<const PackedWeight> packed = nullptr,
    mx::StreamOrDevice s = {}
);
mx::array linear_add_reference(
    const mx::array& residual,
    const mx::array& x,
    const mx::array& w,
    float scale = 1,
    mx::StreamOrDevice s = {}
);

// act(gate[..., n]) * x[..., k] w[n, k]^T, the second product of a gated
// feed-forward part: gated while it is still in the cache. gate has x's dtype.
// Its gradient multiplies x and w again; where one will be asked for, linear
// and gated_mlp_activation are faster.
mx::array linear_gated(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    std::shared_ptr<const PackedWeight> packed = nullptr,
    mx::StreamOrDevice s = {}
);
mx::array linear_gated_reference(
    const mx::array& gate,
    const mx::array& x,
    const mx::array& w,
    Activation act,
    mx::StreamOrDevice s = {}
);

// The same as linear where the packed weight is all there is of w, on a CPU
// stream: x has the dtype it was made for. It has no gradient of the weight,
// and one of x only where packed holds both orders; throws UsageError when
// asked for more.
mx::array linear(
    const mx::array& x,
    std::shared_ptr<const PackedWeight> packed,
    const std::optional<mx::array>& bias = {},
    mx::StreamOrDevice s = {}
);

// The definition, in MLX's own ops; any floating dtype.
mx::array linear_reference(
    const mx::array& x,
    const mx::array& w,
    const std::optional<mx::array>& bias = {},
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
