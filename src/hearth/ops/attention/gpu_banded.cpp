// Attention in a window as blocks of queries, each with the keys near it.
#include <algorithm>

#include "hearth/ops/attention/gpu_ways_impl.h"

namespace hearth::ops {
namespace {

// Cuts rows into blocks and puts them together again.
struct Bands {
  int batch, tokens, band, blocks;
  mx::StreamOrDevice s;

  mx::array filled(const mx::array& x, int axis, int value) const {
    const auto with = mx::array(value, x.dtype());
    return mx::pad(
        x, {axis}, {0}, {blocks * band - tokens}, with, "constant", s
    );
  }
  // [batch, heads, tokens, dim] to [batch, blocks, heads, band, dim]
  mx::array cut(const mx::array& x) const {
    const int heads = x.shape(1), dim = x.shape(3);
    const auto parts =
        mx::reshape(filled(x, 2, 0), {batch, heads, blocks, band, dim}, s);
    return mx::transpose(parts, {0, 2, 1, 3, 4}, s);
  }
  // [batch blocks, heads, band, dim] to [batch, heads, tokens, dim]
  mx::array joined(const mx::array& x) const {
    const int heads = x.shape(1), dim = x.shape(3);
    const auto parts = mx::reshape(x, {batch, blocks, heads, band, dim}, s);
    const auto y = mx::reshape(
        mx::transpose(parts, {0, 2, 1, 3, 4}, s),
        {batch, heads, blocks * band, dim}, s
    );
    return mx::slice(y, {0, 0, 0, 0}, {batch, heads, tokens, dim}, s);
  }
  // Each block after the one before it along that axis. What the first block
  // has before it is zeros, which nobody sees.
  mx::array with_before(const mx::array& x, int axis) const {
    auto stop = x.shape();
    stop[1] -= 1;
    const auto last = mx::slice(x, mx::Shape(x.ndim(), 0), stop, s);
    const auto zero = mx::array(0, x.dtype());
    const auto before = mx::pad(last, {1}, {1}, {0}, zero, "constant", s);
    return mx::concatenate({before, x}, axis, s);
  }
  mx::array rows(const mx::array& x) const { return mx::flatten(x, 0, 1, s); }
};

// [batch or 1, blocks, band, 2 band]: key j of a block and the one before it
// stands at j - band.
mx::array seen_by(const Bands& b, const ResolvedOptions& o) {
  const auto s = b.s;
  const auto count = [&](int from, int to, mx::Shape shape) {
    return mx::reshape(mx::arange(from, to, mx::int32, s), std::move(shape), s);
  };
  const auto i = count(0, b.band, {b.band, 1});
  const auto j = count(-b.band, b.band, {1, 2 * b.band});
  const auto block = count(0, b.blocks, {1, b.blocks, 1, 1});
  const auto zero = mx::array(0);
  const auto apart = mx::subtract(i, j, s);
  auto seen = mx::logical_and(
      mx::greater_equal(apart, zero, s),
      mx::less(apart, mx::array(o.window), s), s
  );
  const auto is_there = mx::logical_or(
      mx::greater(block, zero, s), mx::greater_equal(j, zero, s), s
  );
  seen = mx::logical_and(seen, is_there, s);
  if (!o.query_segments) return seen;
  const auto ids = mx::reshape(
      b.filled(*o.query_segments, 1, -1), {b.batch, b.blocks, b.band}, s
  );
  const auto same = mx::equal(
      mx::expand_dims(ids, 3, s), mx::expand_dims(b.with_before(ids, 2), 2, s),
      s
  );
  return mx::logical_and(seen, same, s);
}

}  // namespace

int band_of(int window) {
  return std::max(window, 128);
}

// Tokens in blocks, of which each sees itself and the one before. Work and mask
// grow with the tokens, not with their square.
mx::array banded_attention(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  const int tokens = t.keys(), band = band_of(o.window);
  const Bands b{t.q.shape(0), tokens, band, (tokens + band - 1) / band, s};
  const auto mask =
      mx::broadcast_to(seen_by(b, o), {b.batch, b.blocks, band, 2 * band}, s);
  const AttentionTensors blocks{
      b.rows(b.cut(t.q)), b.rows(b.with_before(b.cut(t.k), 3)),
      b.rows(b.with_before(b.cut(t.v), 3))
  };
  return b.joined(fused_attention(
      blocks, o.scale, "array", mx::expand_dims(b.rows(mask), 1, s), s
  ));
}

}  // namespace hearth::ops
