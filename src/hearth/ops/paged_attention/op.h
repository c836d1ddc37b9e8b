#pragma once
// Attention of decoding sequences over keys and values that lie in pages, as a
// GPU runs it: many sequences at different places in one step, each with the
// pages that are its own. A CPU has a pass of its own for this
// (infer/cpu/pass.h).
#include "hearth/ops/attention/op.h"

namespace hearth::ops {

// The pages of one layer lie in one array [pages, 2, kv_heads, page_tokens,
// dim], keys before values, float32 or bfloat16. Steps write it where it lies,
// which MLX does not know: whoever owns it keeps it, and evaluates what writes
// before what reads, or has the one depend on the other. On a Metal device, the
// first must have ended (mx::synchronize) where nothing depends on it.
mx::array make_pages(
    int pages,
    int kv_heads,
    int page_tokens,
    int dim,
    mx::Dtype dtype,
    mx::StreamOrDevice s = {}
);

// Whether heads of that size can be run so on that device: on a GPU that runs
// kernels of ours, for dims that eight divides and pages that four does.
bool paged_attention_fits(
    int dim,
    int page_tokens,
    mx::Dtype dtype,
    mx::StreamOrDevice s = {}
);

// Of the rows of a decoding step, one token of a sequence each. int32.
struct PageRows {
  mx::array pages;    // [rows, most]: numbers of a row's pages, in order
  mx::array lengths;  // [rows]: tokens in them before this step's
};

// Writes each row's key and value behind those in its pages and returns the
// attention of its queries over all of them, [rows, 1, heads, dim].
//   qkv      q [rows, 1, heads, dim], k and v [rows, 1, kv_heads, dim]; or one
//            array [rows, 1, heads + 2 kv_heads, dim] that has them in this
//            order
//   angles   a rope_table() by which queries and keys are rotated, in halves,
//            each by its row's length; none: they come as they are
// options: scale, softcap, window. Rows must not share the page that they
// write. No gradients.
mx::array paged_attention(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles,
    const AttentionOptions& options = {},
    mx::StreamOrDevice s = {}
);

// The same without the write, in MLX's own ops.
mx::array paged_attention_reference(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles,
    const AttentionOptions& options = {},
    mx::StreamOrDevice s = {}
);

// Writes k and v [1, tokens, kv_heads, dim] behind the `before` tokens of a
// sequence and returns the keys and the values of all, [1, before + tokens,
// kv_heads, dim]. pages is [most].
std::pair<mx::array, mx::array> append_to_pages(
    const mx::array& k,
    const mx::array& v,
    const mx::array& pool,
    const mx::array& pages,
    int before,
    mx::StreamOrDevice s = {}
);

// One page becomes a copy of another, once what is returned is evaluated.
mx::array copy_page(
    const mx::array& pool,
    int from,
    int to,
    mx::StreamOrDevice s = {}
);

}  // namespace hearth::ops
