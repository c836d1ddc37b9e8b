#pragma once
// Rows of an embedding as one kernel of ours.
#include "hearth/ops/op.h"

namespace hearth::ops {

// Whether the kernel takes rows of this table.
bool rows_fit(const mx::array& table, mx::Dtype dtype, mx::StreamOrDevice s);

// ids int32 of any shape -> [..., dim] of dtype
mx::array rows_gpu(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
