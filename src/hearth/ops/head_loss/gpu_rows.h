#pragma once
// Losses of rows of logits and their gradients as a GPU computes them. Logits
// come in the dtype of the product that made them; all else is float32.
#include <optional>

#include "hearth/ops/head_loss/op.h"

namespace hearth::ops {

struct LogitRows {
  mx::array logits;   // [tokens, vocabulary]
  mx::array targets;  // int32, [tokens], 0 where there is none
  mx::array weights;  // float32, [tokens], 0 where the token does not count
  Teacher teacher;    // of these tokens, its leading dimensions one
};

struct RowLosses {
  mx::array losses;     // [tokens], times weight, 0 where it is 0
  mx::array log_probs;  // [tokens], 0 where the weight is 0
  // factor * d losses / d logits, in their dtype.
  std::optional<mx::array> gradient;
};

// Cross-entropy alone runs as MLX's one kernel, which reads the logits where
// they are and writes the gradient over them.
bool is_plain(const LossTerms& terms);

RowLosses row_losses(
    const LogitRows& rows,
    const LossTerms& terms,
    bool gradient,
    float factor,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
