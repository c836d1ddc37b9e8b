#pragma once
// What a GPU runs; op.cpp has checked what it is given.
#include "hearth/ops/paged_attention/op.h"

namespace hearth::ops {

constexpr int kMostPagedDim = 256;

struct PagedHeads {
  int heads, kv_heads, dim;
};
PagedHeads heads_of(const Arrays& qkv, const mx::array& pool);

mx::array paged_attention_gpu(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles,
    const AttentionOptions& options,
    mx::StreamOrDevice s
);

decltype(append_to_pages) append_to_pages_gpu;
decltype(copy_page) copy_page_gpu;

}  // namespace hearth::ops
