// Attention whose scores are capped.
#include <algorithm>
#include <limits>

#include "hearth/ops/attention/gpu_ways_impl.h"

namespace hearth::ops {
namespace {

// q, k, v of some queries -> their attention with capped scores. Scores are
// float32: rounded to bfloat16 before they are capped, those near the cap would
// be told apart no more.
mx::array capped_part(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  const int batch = t.q.shape(0), heads = t.q.shape(1), dim = t.q.shape(3);
  const int kv_heads = t.k.shape(1), shared = heads / kv_heads;
  const auto number = [](float x) { return mx::array(x); };
  // Queries that share a key's head are rows of one product.
  const auto q = mx::reshape(
      mx::multiply(mx::astype(t.q, mx::float32, s), number(o.scale), s),
      {batch, kv_heads, shared * t.queries(), dim}, s
  );
  const auto k = mx::swapaxes(mx::astype(t.k, mx::float32, s), -1, -2, s);
  auto scores = mx::divide(mx::matmul(q, k, s), number(o.softcap), s);
  scores = mx::multiply(mx::tanh(scores, s), number(o.softcap), s);
  scores =
      mx::reshape(scores, {batch, kv_heads, shared, t.queries(), t.keys()}, s);
  auto sight = sight_of(t.queries(), t.keys(), o, s);
  if (sight.mask) {
    const auto never = number(-std::numeric_limits<float>::infinity());
    scores = mx::where(mx::expand_dims(*sight.mask, 1, s), scores, never, s);
  }
  const auto p = mx::astype(mx::softmax(scores, -1, true, s), t.v.dtype(), s);
  const auto out = mx::matmul(
      mx::reshape(p, {batch, kv_heads, shared * t.queries(), t.keys()}, s), t.v,
      s
  );
  return cleared(
      mx::reshape(out, {batch, heads, t.queries(), dim}, s), sight, s
  );
}

}  // namespace

// Capped scores, some queries at a time over the keys that they can see. What a
// part computes is thrown away and made anew for its gradient, so that no more
// than one part's scores are held.
mx::array capped_attention(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  const int queries = t.queries(), keys = t.keys();
  // As few parts as keep a part's scores small: each is a piece of the graph.
  const int part = std::max(256, (queries + 15) / 16);
  const auto tokens_of = [&](const mx::array& x, int axis, int from, int to) {
    mx::Shape start(x.ndim(), 0), stop = x.shape();
    start[axis] = from, stop[axis] = to;
    return mx::slice(x, start, stop, s);
  };
  Arrays parts;
  for (int from = 0; from < queries; from += part) {
    const int to = std::min(queries, from + part);
    const int first = from + o.query_offset, last = to - 1 + o.query_offset;
    int begin = 0, end = keys;
    if (o.window > 0) begin = std::clamp(first - o.window + 1, 0, keys);
    if (o.window > 0) end = std::clamp(last + o.window, 0, keys);
    if (o.causal) end = std::clamp(std::min(end, last + 1), 0, keys);
    // A part that sees no key keeps one, to have something to be blind to.
    if (begin >= end) begin = 0, end = 1;
    auto own = o;
    own.query_offset = first - begin;
    own.self = false;
    if (o.query_segments) {
      own.query_segments = tokens_of(*o.query_segments, 1, from, to);
      own.key_segments = tokens_of(*o.key_segments, 1, begin, end);
    }
    const auto f = [own, s](const Arrays& in) {
      return Arrays{capped_part({in[0], in[1], in[2]}, own, s)};
    };
    parts.push_back(
        mx::checkpoint(f)(
            {tokens_of(t.q, 2, from, to), tokens_of(t.k, 2, begin, end),
             tokens_of(t.v, 2, begin, end)}
        )[0]
    );
  }
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 2, s);
}

}  // namespace hearth::ops
