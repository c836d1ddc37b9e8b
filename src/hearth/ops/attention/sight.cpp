#include "hearth/ops/attention/sight_impl.h"

namespace hearth::ops {
namespace {

// Who sees whom, as booleans [batch or 1, 1, queries, keys]; nothing where
// everyone sees everyone.
std::optional<mx::array> mask_of(
    int queries,
    int keys,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  std::optional<mx::array> mask;
  const auto add = [&](const mx::array& m) {
    mask = mask ? mx::logical_and(*mask, m, s) : m;
  };
  const auto p = mx::reshape(
      mx::arange(o.query_offset, o.query_offset + queries, mx::int32, s),
      {1, 1, queries, 1}, s
  );
  const auto j =
      mx::reshape(mx::arange(0, keys, mx::int32, s), {1, 1, 1, keys}, s);
  if (o.causal) add(mx::less_equal(j, p, s));
  if (o.window > 0) {
    const auto apart = mx::abs(mx::subtract(p, j, s), s);
    add(mx::less(apart, mx::array(o.window), s));
  }
  if (o.query_segments) {
    const auto& a = *o.query_segments;
    const auto& b = *o.key_segments;
    add(mx::equal(
        mx::reshape(a, {a.shape(0), 1, a.shape(1), 1}, s),
        mx::reshape(b, {b.shape(0), 1, 1, b.shape(1)}, s), s
    ));
  }
  return mask;
}

// Whether some query may see no key at all.
bool may_be_blind(int queries, int keys, const ResolvedOptions& o) {
  if (o.self) return false;
  if (o.query_segments) return true;
  const bool before = o.query_offset < 0;
  const bool beyond = o.query_offset + queries > keys;
  return keys == 0 || (o.causal && before) ||
         (o.window > 0 && (before || beyond));
}

}  // namespace

mx::array heads_first(const mx::array& x, mx::StreamOrDevice s) {
  return mx::transpose(x, {0, 2, 1, 3}, s);
}

Sight sight_of(
    int queries,
    int keys,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  Sight r{mask_of(queries, keys, o, s), {}};
  if (r.mask && may_be_blind(queries, keys, o)) {
    r.seeing = mx::any(*r.mask, -1, true, s);
    r.mask = mx::logical_or(*r.mask, mx::logical_not(*r.seeing, s), s);
  }
  return r;
}

mx::array cleared(
    const mx::array& out,
    const Sight& sight,
    mx::StreamOrDevice s
) {
  if (!sight.seeing) return out;
  return mx::where(*sight.seeing, out, mx::array(0, out.dtype()), s);
}

}  // namespace hearth::ops
