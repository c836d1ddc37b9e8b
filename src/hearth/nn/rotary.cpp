#include "hearth/nn/rotary.h"

#include <algorithm>
#include <bit>

#include "hearth/ops/dry_run.h"

namespace hearth::nn {

mx::array Rotary::table(int length) const {
  // A graph that is never computed reads no rotation.
  if (ops::DryRun::building() != nullptr) {
    return ops::described_leaf({length, config_.dims}, mx::float32);
  }
  const std::lock_guard lock(mutex_);
  const bool dynamic = config_.scaling == ops::RopeScaling::dynamic;
  const bool stale =
      !table_ || table_->shape(0) < length ||
      (dynamic && std::max(length, config_.original_length) !=
                      std::max(table_for_, config_.original_length));
  if (stale) {
    ops::RopeConfig now = config_;
    now.length = length;
    const auto rows =
        std::bit_ceil(static_cast<unsigned>(std::max(length, 64)));
    table_ =
        ops::rope_table(ops::rope_frequencies(now), static_cast<int>(rows));
    table_->eval();
    table_for_ = length;
  }
  return *table_;
}

mx::array Rotary::operator()(const mx::array& x, const Pass& pass) const {
  return ops::rope(
      x, pass.positions, table(pass.length), ops::RopePairs::halves
  );
}

std::vector<mx::array> Rotary::heads(
    const mx::array& joint,
    int heads,
    int kv_heads,
    const Pass& pass
) const {
  return ops::rope_heads(
      joint, heads, kv_heads, pass.positions, table(pass.length),
      ops::RopePairs::halves
  );
}

}  // namespace hearth::nn
