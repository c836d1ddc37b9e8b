// The definition of the rotary embedding, in MLX's own ops.
#include "hearth/ops/rope/op.h"

namespace hearth::ops {

mx::array rope_reference(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  const auto wide_type = x.dtype() == mx::float64 ? mx::float64 : mx::float32;
  const int half = table.shape(1) / 2, last = 3;
  // [batch or 1, length, 1, dims]
  auto rows = mx::take(mx::astype(table, wide_type, s), positions, 0, s);
  rows = mx::expand_dims(rows, -2, s);
  const auto rotations = mx::split(rows, 2, -1, s);
  const auto wide = mx::astype(x, wide_type, s);
  const auto parts = mx::split(wide, mx::Shape{2 * half}, last, s);
  const bool interleaved = pairs == RopePairs::interleaved;
  mx::Shape paired = x.shape();
  paired.back() = interleaved ? half : 2;
  paired.push_back(interleaved ? 2 : half);
  const int pair_axis = interleaved ? 4 : 3;
  const auto ab = mx::split(mx::reshape(parts[0], paired, s), 2, pair_axis, s);
  const auto a = mx::squeeze(ab[0], pair_axis, s);
  const auto b = mx::squeeze(ab[1], pair_axis, s);
  const auto &c = rotations[0], &d = rotations[1];
  const auto first =
      mx::subtract(mx::multiply(a, c, s), mx::multiply(b, d, s), s);
  const auto second = mx::add(mx::multiply(a, d, s), mx::multiply(b, c, s), s);
  auto y = mx::stack({first, second}, pair_axis, s);
  mx::Shape flat = x.shape();
  flat.back() = 2 * half;
  y = mx::reshape(y, flat, s);
  if (parts.size() > 1 && parts[1].size() > 0) {
    y = mx::concatenate({y, parts[1]}, last, s);
  }
  return mx::astype(y, x.dtype(), s);
}

}  // namespace hearth::ops
