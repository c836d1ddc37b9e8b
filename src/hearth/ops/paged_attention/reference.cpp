// The definition of a decoding step's attention: the pages of each row
// gathered, its new key and value laid among them, then attention's own
// definition.
#include "hearth/ops/paged_attention/faces_impl.h"
#include "hearth/ops/rope/op.h"

namespace hearth::ops {

mx::array paged_attention_reference(
    const Arrays& qkv,
    const mx::array& pool,
    const PageRows& rows,
    const std::optional<mx::array>& angles,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  const auto [heads, kv, dim] = heads_of(qkv, pool);
  const int count = rows.lengths.shape(0);
  const int keys = rows.pages.shape(1) * pool.shape(3);
  const auto part = [&](std::size_t i, int from, int to) {
    if (qkv.size() == 3) return qkv[i];
    return mx::slice(qkv[0], {0, 0, from, 0}, {count, 1, to, dim}, s);
  };
  const auto at = mx::reshape(rows.lengths, {count, 1}, s);
  const auto rotated = [&](const mx::array& x) {
    if (!angles) return x;
    return rope_reference(x, at, *angles, RopePairs::halves, s);
  };
  const auto q = rotated(part(0, 0, heads));
  const auto new_k = rotated(part(1, heads, heads + kv));
  const auto new_v = part(2, heads + kv, heads + 2 * kv);
  // [rows, pages, 2, kv, page, dim] -> keys or values [rows, keys, kv, dim]
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
  // Each row by itself: causal sight from where its token stands hides whatever
  // lies behind it in its pages.
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

}  // namespace hearth::ops
