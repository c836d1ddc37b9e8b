#pragma once
// The loss of many tokens, a chunk of them at a time: the product, the loss,
// and at once both gradients, so that no chunk's logits are kept or made again.
#include "hearth/ops/head_loss/op.h"
#include "hearth/ops/head_loss/terms_impl.h"

namespace hearth::ops {

// Which gradients are made.
struct Wanted {
  bool h = false, w = false;
  bool any() const { return h || w; }
};

// What the chunks are made of: tokens [n, k] and what goes with them, nothing
// of which is differentiated through.
struct HeadInputs {
  mx::array h, w;  // of one dtype
  head_loss_terms::LossTokens tokens;
  Teacher teacher;
};

struct HeadSums {
  mx::array loss, log_probs;  // the latter [n]
  std::optional<mx::array> dh, dw;
};

HeadInputs head_inputs(
    const mx::array& h,
    const mx::array& w,
    const mx::array& targets,
    const std::optional<mx::array>& weights,
    const Teacher& teacher,
    mx::Stream s
);

// chunk is how many tokens have logits at a time.
HeadSums head_sums(
    const HeadInputs& in,
    const LossTerms& terms,
    Wanted wanted,
    int chunk,
    mx::Stream s
);

}  // namespace hearth::ops
