#include "hearth/ops/paged_attention/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"
#include "hearth/ops/paged_attention/faces_impl.h"

namespace hearth::ops {
namespace {

void check(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles
) {
  const auto refuse = [](const std::string& what) {
    throw UsageError("[ops.paged_attention] " + what);
  };
  if (qkv.size() != 1 && qkv.size() != 3) {
    refuse(fmt::format("there must be 1 or 3 inputs, got {}", qkv.size()));
  }
  const int count = rows.lengths.shape(0);
  for (const auto& x : qkv) {
    if (x.ndim() == 4 && x.shape(0) == count && x.shape(1) == 1 &&
        x.shape(3) == pool.shape(4) && x.dtype() == pool.dtype()) {
      continue;
    }
    refuse(
        fmt::format(
            "inputs must be [{}, 1, heads, {}] of the pages' type, got [{}]",
            count, pool.shape(4), fmt::join(x.shape(), ", ")
        )
    );
  }
  if (rows.pages.ndim() != 2 || rows.pages.shape(0) != count) {
    refuse(fmt::format("pages must be [{}, most]", count));
  }
  if (angles && angles->shape(1) > pool.shape(4)) {
    refuse("the table must be no wider than a head");
  }
}

}  // namespace

mx::array make_pages(
    int pages,
    int kv_heads,
    int page_tokens,
    int dim,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  auto pool = mx::zeros({pages, 2, kv_heads, page_tokens, dim}, dtype, s);
  pool.eval();
  return pool;
}

bool paged_attention_fits(
    int dim,
    int page_tokens,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  constexpr int kTokensAtOnce = 4;
  return face_of(s, dtype) == Face::gpu && runs_gpu_kernels(s) &&
         (dtype == mx::float32 || dtype == mx::bfloat16) && dim % 8 == 0 &&
         dim <= kMostPagedDim && page_tokens % kTokensAtOnce == 0;
}

PagedHeads heads_of(const Arrays& qkv, const mx::array& pool) {
  const int kv = pool.shape(2);
  const int heads =
      qkv.size() == 1 ? qkv[0].shape(2) - 2 * kv : qkv[0].shape(2);
  return {heads, kv, pool.shape(4)};
}

mx::array paged_attention(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  check(qkv, pool, rows, angles);
  return paged_attention_gpu(qkv, pool, rows, angles, options, s);
}

std::pair<mx::array, mx::array> append_to_pages(
    const mx::array& k,
    const mx::array& v,
    const mx::array& pool,
    const mx::array& pages,
    int before,
    mx::StreamOrDevice s
) {
  const mx::Shape shape{1, k.shape(1), pool.shape(2), pool.shape(4)};
  const int room = pages.shape(0) * pool.shape(3);
  if (k.shape() != shape || v.shape() != shape || k.dtype() != pool.dtype() ||
      v.dtype() != pool.dtype() || before + k.shape(1) > room) {
    throw UsageError(
        fmt::format(
            "[ops.append_to_pages] k and v must be [{}] of the pages' type, "
            "and fit behind {} tokens in {} pages",
            fmt::join(shape, ", "), before, pages.shape(0)
        )
    );
  }
  return append_to_pages_gpu(k, v, pool, pages, before, s);
}

mx::array copy_page(
    const mx::array& pool,
    int from,
    int to,
    mx::StreamOrDevice s
) {
  const int pages = pool.shape(0);
  if (from < 0 || from >= pages || to < 0 || to >= pages) {
    throw UsageError(
        fmt::format(
            "[ops.copy_page] pages must be below {}, got {} and {}", pages,
            from, to
        )
    );
  }
  return copy_page_gpu(pool, from, to, s);
}

}  // namespace hearth::ops
