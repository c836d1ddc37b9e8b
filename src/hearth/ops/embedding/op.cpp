#include "hearth/ops/embedding/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/embedding/faces_impl.h"

namespace hearth::ops {

mx::array embedding(
    const mx::array& ids,
    const mx::array& table,
    std::optional<mx::Dtype> dtype,
    const Home& home,
    mx::StreamOrDevice s
) {
  if (table.ndim() != 2) {
    throw UsageError(
        fmt::format(
            "[ops.embedding] the table must be [rows, dim], got [{}]",
            fmt::join(table.shape(), ", ")
        )
    );
  }
  const auto y = dtype.value_or(table.dtype());
  const auto whole = mx::astype(ids, mx::int32, s);
  if (!on_cpu(s)) return embedding_gpu(whole, table, y, s);
  if (!ours(s, y) || !ours(s, table.dtype())) {
    return embedding_reference(whole, table, y, s);
  }
  with_dtype("ops.embedding", table.dtype(), [](auto*) {});
  with_dtype("ops.embedding", y, [](auto*) {});
  return embedding_cpu(whole, table, y, home, s);
}

}  // namespace hearth::ops
