// The definition of attention in MLX's own ops, and its fused form.
#include <cmath>
#include <limits>

#include "hearth/ops/attention/driver_impl.h"
#include "hearth/ops/attention/op.h"

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
  if (o.query_segments) return true;
  const bool before = o.query_offset < 0;
  const bool beyond = o.query_offset + queries > keys;
  return keys == 0 || (o.causal && before) ||
         (o.window > 0 && (before || beyond));
}

mx::array heads_first(const mx::array& x, mx::StreamOrDevice s) {
  return mx::transpose(x, {0, 2, 1, 3}, s);
}

// Blind queries are let see everything and their output is cleared: a softmax
// over nothing is NaN, and so would its gradient be.
struct Sight {
  std::optional<mx::array> mask, seeing;
};
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

// MLX's exp, and with it softmax, is of single precision inside even for
// float64; its expm1 is not.
mx::array softmax_of(const mx::array& x, mx::StreamOrDevice s) {
  if (x.dtype() != mx::float64) return mx::softmax(x, -1, true, s);
  const auto one = mx::array(1.0, mx::float64);
  const auto base = mx::stop_gradient(mx::max(x, -1, true, s), s);
  const auto e = mx::add(mx::expm1(mx::subtract(x, base, s), s), one, s);
  return mx::divide(e, mx::sum(e, -1, true, s), s);
}

}  // namespace

mx::array attention_reference(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  const auto o = resolve("ops.attention_reference", q, k, v, options, s);
  const int queries = q.shape(1), keys = k.shape(1);
  const auto wide = [&](const mx::array& x) {
    const auto h = heads_first(x, s);
    return x.dtype() == mx::float64 ? h : mx::astype(h, mx::float32, s);
  };
  const auto shared = [&](const mx::array& x) {
    return mx::repeat(wide(x), q.shape(2) / k.shape(2), 1, s);
  };
  const auto constant = [&](double x, const mx::array& like) {
    return mx::array(x, like.dtype());
  };
  auto scores = mx::matmul(wide(q), mx::swapaxes(shared(k), -1, -2, s), s);
  scores = mx::multiply(scores, constant(o.scale, scores), s);
  if (o.softcap > 0) {
    const auto cap = constant(o.softcap, scores);
    scores = mx::multiply(mx::tanh(mx::divide(scores, cap, s), s), cap, s);
  }
  const auto sight = sight_of(queries, keys, o, s);
  if (sight.mask) {
    const auto never =
        constant(-std::numeric_limits<double>::infinity(), scores);
    scores = mx::where(*sight.mask, scores, never, s);
  }
  auto out = mx::matmul(softmax_of(scores, s), shared(v), s);
  out = cleared(out, sight, s);
  return mx::astype(heads_first(out, s), q.dtype(), s);
}

mx::array attention_fast(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  if (options.softcap > 0) return attention_reference(q, k, v, options, s);
  const auto o = resolve("ops.attention_fast", q, k, v, options, s);
  const int queries = q.shape(1), keys = k.shape(1);
  // MLX's causal mode ends with the last query at the last key.
  const bool plain_causal = o.causal && o.window == 0 && !o.query_segments &&
                            o.query_offset == keys - queries && queries <= keys;
  const auto sight = plain_causal ? Sight{} : sight_of(queries, keys, o, s);
  const char* mode = plain_causal ? "causal" : sight.mask ? "array" : "";
  auto out = mx::fast::scaled_dot_product_attention(
      heads_first(q, s), heads_first(k, s), heads_first(v, s), o.scale, mode,
      sight.mask, {}, false, s
  );
  return heads_first(cleared(out, sight, s), s);
}

}  // namespace hearth::ops
