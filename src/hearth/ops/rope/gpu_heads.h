#pragma once
// Rows of queries, keys and values side by side, as one product gives them,
// split and rotated by one kernel of ours, and joined by another for the
// gradient.
#include "hearth/ops/rope/op.h"

namespace hearth::ops {

struct JointHeads {
  int heads, kv_heads;
};

// joint [batch, length, heads + 2 kv_heads, head_dim] -> q, k, v
Arrays split_heads_gpu(
    const mx::array& joint,
    JointHeads shape,
    const mx::array& positions,
    const mx::array& table,
    mx::StreamOrDevice s
);

// dq, dk, dv -> the gradient of joint
mx::array join_heads_gpu(
    const Arrays& gradients,
    const mx::array& positions,
    const mx::array& table,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
