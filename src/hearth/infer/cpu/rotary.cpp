#include "hearth/infer/cpu/rotary.h"

#include <algorithm>
#include <bit>

namespace hearth::infer {

void RotaryTable::grow(long positions) {
  if (positions <= positions_) return;
  constexpr unsigned kLeast = 64;
  const auto rows =
      std::bit_ceil(std::max(static_cast<unsigned>(positions), kLeast));
  auto table =
      ops::rope_table(ops::rope_frequencies(*config_), static_cast<int>(rows));
  table.eval();
  table_.assign(table.data<float>(), table.data<float>() + table.size());
  positions_ = rows;
}

void RotaryTable::rotate(
    const kernels::Table& kernels,
    const RotaryRows& rows,
    long begin,
    long end
) const noexcept {
  kernels.rope->f32.rotate(
      {.heads = rows.heads,
       .head_dim = rows.head_dim,
       .half = config_->dims / 2,
       .interleaved = false,
       .inverse = false,
       .x = rows.data,
       .y = rows.data,
       .table = table_.data(),
       .table_rows = positions_,
       .positions = rows.positions,
       .token_stride = rows.stride,
       .head_stride = rows.head_dim},
      begin, end
  );
}

}  // namespace hearth::infer
