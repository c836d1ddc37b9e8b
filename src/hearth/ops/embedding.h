#pragma once
// Token embeddings.
#include <optional>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Rows of table [rows, dim] (float32 or bfloat16) by ids (int32, any shape):
// shape of ids + [dim], of dtype (the table's unless given). A number outside
// the table gives NaN. The table's gradient is float32 and does not depend on
// the number of threads.
mx::array embedding(
    const mx::array& ids,
    const mx::array& table,
    std::optional<mx::Dtype> dtype = {},
    mx::StreamOrDevice s = {}
);

mx::array embedding_reference(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
