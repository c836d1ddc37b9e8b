#pragma once
// Rotary position embedding of queries and keys.
#include "hearth/ops/op.h"
#include "hearth/ops/rope/frequencies.h"

namespace hearth::ops {

// Which elements of a head make a pair: (i, i + dims/2) as Llama has it in the
// Hugging Face layout, or (2i, 2i + 1) as the papers and GGUF do.
enum class RopePairs { halves, interleaved };

// x [batch, length, heads, head_dim], float32 or bfloat16, rotated by the rows
// of `table` (see rope_table) that `positions`, int32 [batch, length] or
// [length], name. Elements of a head beyond the table's width pass unchanged.
// A position outside the table gives NaN. The gradient is the rotation back.
mx::array rope(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s = {}
);

// Rows of queries, keys and values side by side, as one product gives them,
// [batch, length, heads + 2 kv_heads, head_dim], apart: queries and keys
// rotated, the values as they are.
Arrays rope_heads(
    const mx::array& joint,
    int heads,
    int kv_heads,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s = {}
);

// The definition, in MLX's own ops; any floating dtype.
mx::array rope_reference(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
