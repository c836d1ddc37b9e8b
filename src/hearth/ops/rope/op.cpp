#include "hearth/ops/rope/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/rope/faces_impl.h"

namespace hearth::ops {
namespace {

void check(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table
) {
  constexpr const char* kWhere = "[ops.rope]";
  if (x.ndim() != 4) {
    throw UsageError(
        fmt::format(
            "{} x must be [batch, length, heads, head_dim], got [{}]", kWhere,
            fmt::join(x.shape(), ", ")
        )
    );
  }
  if (table.ndim() != 2 || table.shape(1) % 2 != 0 ||
      table.shape(1) > x.shape(3)) {
    throw UsageError(
        fmt::format(
            "{} the table must be [positions, dims] with even dims of at most "
            "{}, "
            "got [{}]",
            kWhere, x.shape(3), fmt::join(table.shape(), ", ")
        )
    );
  }
  const mx::Shape whole{x.shape(0), x.shape(1)}, shared{x.shape(1)};
  if (positions.shape() != whole && positions.shape() != shared) {
    throw UsageError(
        fmt::format(
            "{} positions must be [{}] or [{}], got [{}]", kWhere,
            fmt::join(whole, ", "), x.shape(1),
            fmt::join(positions.shape(), ", ")
        )
    );
  }
}

}  // namespace

mx::array rope(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  check(x, positions, table);
  const Face face = face_of(s, x.dtype());
  if (face == Face::reference) {
    return rope_reference(x, positions, table, pairs, s);
  }
  const auto p = mx::astype(positions, mx::int32, s);
  const auto t = mx::astype(table, mx::float32, s);
  if (face == Face::gpu) return rope_gpu(x, p, t, pairs, s);
  with_dtype("ops.rope", x.dtype(), [](auto*) {});
  return rope_cpu(x, p, t, pairs, s);
}

Arrays rope_heads(
    const mx::array& joint,
    int heads,
    int kv_heads,
    const mx::array& positions,
    const mx::array& table,
    RopePairs pairs,
    mx::StreamOrDevice s
) {
  check(joint, positions, table);
  if (joint.shape(2) != heads + 2 * kv_heads) {
    throw UsageError(
        fmt::format(
            "[ops.rope_heads] there must be {} + 2 {} heads side by side, got "
            "{}",
            heads, kv_heads, joint.shape(2)
        )
    );
  }
  if (face_of(s, joint.dtype()) == Face::gpu) {
    return rope_heads_gpu(
        joint, heads, kv_heads, mx::astype(positions, mx::int32, s),
        mx::astype(table, mx::float32, s), pairs, s
    );
  }
  const auto parts = mx::split(joint, mx::Shape{heads, heads + kv_heads}, 2, s);
  return {
      rope(parts[0], positions, table, pairs, s),
      rope(parts[1], positions, table, pairs, s),
      mx::contiguous(parts[2], false, s)
  };
}

}  // namespace hearth::ops
