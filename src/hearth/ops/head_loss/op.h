#pragma once
// The language-model head and its loss in one op: logits are never kept.
#include <cstddef>
#include <memory>
#include <optional>

#include "hearth/kernels/head_loss.h"
#include "hearth/ops/gradient_home.h"
#include "hearth/ops/linear/packed_weight.h"

namespace hearth::ops {

using kernels::Divergence;
using kernels::LossTerms;

// The teacher of a divergence: logits[tokens..., vocabulary], or the k most
// likely tokens with their log probabilities at the loss's temperature, both
// [tokens..., k] with k <= 1024 and no token twice. With those, all other
// tokens count as one outcome.
struct Teacher {
  std::optional<mx::array> logits;
  std::optional<mx::array> indices, log_probs;
};

struct HeadLossOptions {
  LossTerms terms;
  // What the op computes besides the loss, in the same pass. A gradient that
  // is asked for later must be wanted now.
  bool input_gradient = true, weight_gradient = true;
  // Of w's gradient, which is added there together with the loss: loss_sum
  // itself must be what is differentiated. Where it is multiplied by anything
  // but 1 the gradients are NaN. Null: it has none.
  Home home;
  // Memory for a chunk of tokens and what goes with it, on a CPU stream.
  std::size_t scratch_limit = std::size_t{56} << 20;
};

struct HeadLoss {
  mx::array loss_sum;    // of weight * loss, float32
  mx::array weight_sum;  // of the tokens that count, float32, no gradient
  mx::array log_probs;   // of targets, at temperature 1, float32, no gradient
};

// The loss of tokens h[..., k] against targets[...] with logits h w^T, where w
// is [vocabulary, k]. h is float32 or bfloat16; w is either and is rounded to
// h's dtype; logits and losses are float32. A token does not count when its
// target is negative or its weight is 0: it is dropped before the product, its
// log_prob and gradient are 0. h and w have gradients (w's is float32).
HeadLoss head_loss(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights = {},
    const HeadLossOptions& options = {},
    const Teacher& teacher = {},
    std::shared_ptr<const PackedWeight> packed = nullptr,
    mx::StreamOrDevice s = {}
);

// The same in two steps, with every logit held between them: the product by our
// kernels, in h's dtype, and the loss in MLX's own ops. What the fused op saves
// is measured against it.
HeadLoss head_loss_unfused(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights = {},
    const LossTerms& terms = {},
    std::shared_ptr<const PackedWeight> packed = nullptr,
    mx::StreamOrDevice s = {}
);

// log p(target) of each token, for losses that are functions of it (policy
// gradients): its gradient takes any upstream value per token. Tokens with a
// negative target give 0.
mx::array head_log_probs(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    float soft_cap = 0,
    std::shared_ptr<const PackedWeight> packed = nullptr,
    const Home& home = nullptr,
    mx::StreamOrDevice s = {}
);

// The definitions, in MLX's own ops, which hold all logits; any floating dtype.
HeadLoss head_loss_reference(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights = {},
    const LossTerms& terms = {},
    const Teacher& teacher = {},
    mx::StreamOrDevice s = {}
);
mx::array head_log_probs_reference(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    float soft_cap = 0,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
