// The rotary embedding as a GPU runs it: one kernel that reads the table's
// rows. mx::fast::rope would work the angles out anew for each element, in
// float32, from positions that it takes to follow each other; here every
// scaling variant and every position is the table's, to the bit what a CPU
// rotates by.
#include <limits>

#include "hearth/ops/compiled.h"
#include "hearth/ops/rope/faces_impl.h"
#include "hearth/ops/rope/gpu_heads.h"
#include "hearth/ops/rope/gpu_rotate.h"

namespace hearth::ops {
namespace {

// The table's rows at the positions, [batch or 1, length, dims]; NaN for a
// position outside of it, which on a GPU nothing would stop.
mx::array rows_at(
    const mx::array& positions,
    const mx::array& table,
    mx::StreamOrDevice s
) {
  const int last = table.shape(0) - 1;
  const auto p =
      positions.ndim() == 1 ? mx::expand_dims(positions, 0, s) : positions;
  const auto inside = mx::clip(p, mx::array(0), mx::array(last), s);
  const auto there = mx::expand_dims(mx::equal(p, inside, s), -1, s);
  const auto nan = mx::array(std::numeric_limits<float>::quiet_NaN());
  return mx::where(there, mx::take(table, inside, 0, s), nan, s);
}

// x, rows -> x rotated, or rotated back. Both of a pair are worked out for each
// of its two places and one is taken, so that one kernel writes the whole.
Arrays rotated(
    const Arrays& in,
    mx::StreamOrDevice s,
    RopePairs pairs,
    bool back
) {
  const auto &x = in[0], &rows = in[1];
  const int dims = rows.shape(2), half = dims / 2;
  const bool interleaved = pairs == RopePairs::interleaved;
  const int pair_axis = interleaved ? 4 : 3;
  const auto part = [&](const mx::array& a, int axis, int from, int to) {
    mx::Shape start(a.ndim(), 0), stop = a.shape();
    start[static_cast<std::size_t>(axis)] = from;
    stop[static_cast<std::size_t>(axis)] = to;
    return mx::slice(a, start, stop, s);
  };
  auto split = x.shape();
  split.back() = interleaved ? half : 2;
  split.push_back(interleaved ? 2 : half);
  const bool whole = dims == x.shape(3);
  const auto pairs_of = mx::reshape(whole ? x : part(x, 3, 0, dims), split, s);
  const auto both = [&](int which) {
    const auto one = part(pairs_of, pair_axis, which, which + 1);
    return mx::astype(mx::broadcast_to(one, split, s), mx::float32, s);
  };
  const auto factors = [&](int from) {
    const mx::Shape beside{
        rows.shape(0), rows.shape(1), 1, interleaved ? half : 1,
        interleaved ? 1 : half
    };
    const auto t = mx::reshape(part(rows, 2, from, from + half), beside, s);
    return mx::broadcast_to(t, split, s);
  };
  const auto a = both(0), b = both(1), cosine = factors(0);
  const auto sine = back ? mx::negative(factors(half), s) : factors(half);
  const auto first =
      mx::subtract(mx::multiply(a, cosine, s), mx::multiply(b, sine, s), s);
  const auto second =
      mx::add(mx::multiply(a, sine, s), mx::multiply(b, cosine, s), s);
  const mx::Shape pair = interleaved ? mx::Shape{1, 2} : mx::Shape{2, 1};
  auto y = mx::where(mx::array({true, false}, pair), first, second, s);
  auto flat = x.shape();
  flat.back() = dims;
  y = mx::reshape(mx::astype(y, x.dtype(), s), flat, s);
  if (!whole) y = mx::concatenate({y, part(x, 3, dims, x.shape(3))}, 3, s);
  return {y};
}

}  // namespace

mx::array rope_gpu(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  if (rotate_fits(x, table, pairs, s)) {
    const auto run = [=](const Arrays& in) {
      return Arrays{rotate_gpu(in[0], in[1], in[2], false, s)};
    };
    // Positions and table have no gradient; MLX wants arrays in its place.
    const auto back = [=](const Arrays& in, const Arrays& ct, const Arrays&) {
      return Arrays{rotate_gpu(ct[0], in[1], in[2], true, s), in[1], in[2]};
    };
    return mx::custom_vjp(run, back)({x, positions, table})[0];
  }
  const auto rows = rows_at(positions, table, s);
  const auto forward = [=](const Arrays& in) {
    return compiled(rotated, in, s, pairs, false);
  };
  // The rows have no gradient; MLX wants an array in its place.
  const auto backward = [=](const Arrays& in, const Arrays& ct, const Arrays&) {
    const auto dx = compiled(rotated, {ct[0], in[1]}, s, pairs, true)[0];
    return Arrays{dx, in[1]};
  };
  return mx::custom_vjp(forward, backward)({x, rows})[0];
}

Arrays rope_heads_gpu(
    const mx::array& joint,
    int heads,
    int kv_heads,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  if (!rotate_fits(joint, table, pairs, s)) {
    const auto parts =
        mx::split(joint, mx::Shape{heads, heads + kv_heads}, 2, s);
    return {
        rope_gpu(parts[0], positions, table, pairs, s),
        rope_gpu(parts[1], positions, table, pairs, s), parts[2]
    };
  }
  const JointHeads shape{heads, kv_heads};
  const auto run = [=](const Arrays& in) {
    return split_heads_gpu(in[0], shape, in[1], in[2], s);
  };
  const auto back = [=](const Arrays& in, const Arrays& ct, const Arrays&) {
    return Arrays{join_heads_gpu(ct, in[1], in[2], s), in[1], in[2]};
  };
  return mx::custom_vjp(run, back)({joint, positions, table});
}

}  // namespace hearth::ops
