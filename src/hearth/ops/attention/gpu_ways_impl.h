#pragma once
// The ways a GPU's attention takes. gpu.cpp chooses between them.
#include "hearth/ops/attention/sight_impl.h"

namespace hearth::ops {

// All of them [batch, heads, tokens, dim]; there may be fewer heads of k and v,
// which MLX's kernels share among the queries' without repeating them.
struct AttentionTensors {
  mx::array q, k, v;
  int queries() const { return q.shape(2); }
  int keys() const { return k.shape(2); }
};

enum class AttentionWay {
  fused,   // one of the kernel's own masks will do
  coded,   // documents are told apart by codes
  banded,  // a window narrow beside the row
  capped,  // capped scores
  masked,  // a mask of booleans
};
AttentionWay attention_way(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
);
mx::array attention_by(
    AttentionWay way,
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
);

// A band is as many tokens as the window sees, at least 128: in less, a
// kernel's tiles would be half empty.
int band_of(int window);

// MLX's attention.
mx::array fused_attention(
    const AttentionTensors& t,
    float scale,
    const char* mode,
    const std::optional<mx::array>& mask,
    mx::StreamOrDevice s
);
mx::array banded_attention(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
);
mx::array capped_attention(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
