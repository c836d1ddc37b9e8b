#pragma once
// Token embeddings.
#include <optional>

#include "hearth/ops/gradient_home.h"

namespace hearth::ops {

// Rows of table [rows, dim] (float32 or bfloat16) by ids (int32, any shape):
// shape of ids + [dim], of dtype (the table's unless given). A number outside
// the table gives NaN. The table's gradient is float32, does not depend on the
// number of threads, and is added up in its home where it has one.
mx::array embedding(
    const mx::array& ids,
    const mx::array& table,
    std::optional<mx::Dtype> dtype = {},
    const Home& home = nullptr,
    mx::StreamOrDevice s = {}
);

mx::array embedding_reference(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
