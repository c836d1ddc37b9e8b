// The embedding as a GPU runs it.
#include <limits>

#include "hearth/ops/embedding/faces_impl.h"
#include "hearth/ops/embedding/gpu_rows.h"

namespace hearth::ops {
namespace {

mx::array inside(const mx::array& ids, int rows, mx::StreamOrDevice s) {
  return mx::logical_and(
      mx::greater_equal(ids, mx::array(0), s),
      mx::less(ids, mx::array(rows), s), s
  );
}

// A number outside the table reads a row that is there: on a GPU nothing would
// stop it.
mx::array clipped(const mx::array& ids, int rows, mx::StreamOrDevice s) {
  return mx::clip(ids, mx::array(0), mx::array(rows - 1), s);
}

mx::array gathered(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  if (rows_fit(table, dtype, s)) return rows_gpu(ids, table, dtype, s);
  const int rows = table.shape(0);
  const auto y = mx::take(table, clipped(ids, rows, s), 0, s);
  const auto there = mx::expand_dims(inside(ids, rows, s), -1, s);
  const auto nan =
      mx::array(std::numeric_limits<float>::quiet_NaN(), table.dtype());
  return mx::astype(mx::where(there, y, nan, s), dtype, s);
}

}  // namespace

// MLX's own gradient would be added up in the table's dtype, where a frequent
// token's share is soon too small to change a bfloat16 sum. It is float32 here,
// as on a CPU.
mx::array embedding_gpu(
    const mx::array& ids,
    const mx::array& table,
    mx::Dtype dtype,
    mx::StreamOrDevice s
) {
  const auto forward = [=](const Arrays& in) {
    return Arrays{gathered(in[1], in[0], dtype, s)};
  };
  const auto backward = [=](const Arrays& in, const Arrays& ct, const Arrays&) {
    const int rows = in[0].shape(0), dim = in[0].shape(1);
    const auto flat = mx::reshape(in[1], {-1}, s);
    const auto dy =
        mx::astype(mx::reshape(ct[0], {-1, dim}, s), mx::float32, s);
    // What is outside adds to a row behind the last, which is cut off.
    const auto row = mx::where(inside(flat, rows, s), flat, mx::array(rows), s);
    const auto sums = mx::scatter_add(
        mx::zeros({rows + 1, dim}, mx::float32, s), row,
        mx::expand_dims(dy, 1, s), 0, s
    );
    const auto grad = mx::slice(sums, {0, 0}, {rows, dim}, s);
    // The ids have no gradient; MLX wants an array in its place.
    return Arrays{grad, in[1]};
  };
  return mx::custom_vjp(forward, backward)({table, ids})[0];
}

}  // namespace hearth::ops
