// The definition of attention in MLX's own ops.
#include <limits>

#include "hearth/ops/attention/sight_impl.h"

namespace hearth::ops {
namespace {

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

}  // namespace hearth::ops
