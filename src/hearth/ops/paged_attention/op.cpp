#include "hearth/ops/paged_attention/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/gpu_kernel/gpu_kernel.h"
#include "hearth/ops/paged_attention/faces_impl.h"
#include "hearth/ops/rope/op.h"

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

mx::array paged_attention_reference(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  check(qkv, pool, rows, angles);
  const auto [heads, kv, dim] = heads_of(qkv, pool);
  const int count = rows.lengths.shape(0), most = rows.pages.shape(1);
  const int keys = most * pool.shape(3);
  const auto part = [&](std::size_t i, int from, int to) {
    if (qkv.size() == 3) return qkv[i];
    return mx::slice(qkv[0], {0, 0, from, 0}, {count, 1, to, dim}, s);
  };
  const auto at = mx::reshape(rows.lengths, {count, 1}, s);
  const auto turned = [&](const mx::array& x) {
    if (!angles) return x;
    return rope_reference(x, at, *angles, RopePairs::halves, s);
  };
  const auto q = turned(part(0, 0, heads));
  const auto new_k = turned(part(1, heads, heads + kv));
  const auto new_v = part(2, heads + kv, heads + 2 * kv);
  // [rows, most, 2, kv, page, dim] -> keys or values [rows, keys, kv, dim]
  const auto held = mx::take(pool, rows.pages, 0, s);
  const auto place = mx::reshape(mx::arange(keys, s), {1, keys}, s);
  const auto of = [&](int which, const mx::array& fresh) {
    auto start = mx::Shape(6, 0), stop = held.shape();
    start[2] = which, stop[2] = which + 1;
    const auto one =
        mx::transpose(mx::slice(held, start, stop, s), {0, 1, 4, 3, 2, 5}, s);
    const auto flat = mx::reshape(one, {count, keys, kv, dim}, s);
    const auto is_new =
        mx::reshape(mx::equal(place, at, s), {count, keys, 1, 1}, s);
    const auto is_old =
        mx::reshape(mx::less(place, at, s), {count, keys, 1, 1}, s);
    const auto none = mx::array(0.0f, flat.dtype());
    return mx::where(is_new, fresh, mx::where(is_old, flat, none, s), s);
  };
  // Who is where, as segments: a key is in its row's or in nobody's.
  AttentionOptions o = options;
  o.causal = true;
  Arrays out;
  for (int r = 0; r < count; ++r) {
    const auto row = [&](const mx::array& x) {
      auto start = mx::Shape(4, 0), stop = x.shape();
      start[0] = r, stop[0] = r + 1;
      return mx::slice(x, start, stop, s);
    };
    auto length = rows.lengths;
    length.eval();
    o.query_offset = length.data<int>()[r];
    out.push_back(
        attention_reference(row(q), row(of(0, new_k)), row(of(1, new_v)), o, s)
    );
  }
  return mx::concatenate(out, 0, s);
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
