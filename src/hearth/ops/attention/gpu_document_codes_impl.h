#pragma once
// Packed documents without a mask: a code of its document beside each query and
// key, so that causal attention itself keeps documents apart.
#include <optional>

#include "hearth/ops/op.h"

namespace hearth::ops {

// Values a code has, for rows of so many tokens; nothing where there is no code
// for that many documents.
std::optional<int> document_code_width(int tokens);

// Codes [batch, tokens, width] of dtype for ids in [0, tokens]. A query's
// product with a key of its own document, times scale, is greater than with any
// other's by so much that a softmax in float32 gives the others exactly
// nothing, unless their other scores differ by tens.
mx::array document_codes(
    const mx::array& ids,
    float scale,
    mx::Dtype dtype,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
