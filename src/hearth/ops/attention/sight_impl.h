#pragma once
// Who sees whom, as arrays for attention that is made of MLX's ops.
#include "hearth/ops/attention/faces_impl.h"

namespace hearth::ops {

// mask: booleans [batch or 1, 1, queries, keys], absent where everyone sees
// everyone. Queries that see nothing are let see everything there and told by
// `seeing`, so that their output can be cleared: a softmax over nothing is NaN,
// and so would its gradient be.
struct Sight {
  std::optional<mx::array> mask, seeing;
};
Sight sight_of(
    int queries,
    int keys,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
);

// out [batch, heads, queries, dim] with zeros for who sees nothing.
mx::array cleared(
    const mx::array& out,
    const Sight& sight,
    mx::StreamOrDevice s
);

// [batch, tokens, heads, dim] to [batch, heads, tokens, dim], or back: a view.
mx::array heads_first(const mx::array& x, mx::StreamOrDevice s);

}  // namespace hearth::ops
