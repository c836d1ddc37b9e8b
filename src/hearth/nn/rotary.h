#pragma once
// Rotary positions as a module: the table of rotations, made once and grown
// when a longer sequence comes.
#include <mutex>
#include <optional>
#include <vector>

#include "hearth/nn/pass.h"
#include "hearth/ops/rope/op.h"

namespace hearth::nn {

class Rotary {
 public:
  explicit Rotary(ops::RopeConfig config) : config_(config) {}
  // Rotates x [batch, length, heads, dim] by the pass's positions.
  mx::array operator()(const mx::array& x, const Pass& pass) const;
  // The rotations of that many positions at least, evaluated.
  mx::array table(int length) const;
  // Queries, keys and values that lie side by side, apart and rotated.
  std::vector<mx::array> heads(
      const mx::array& joint,
      int heads,
      int kv_heads,
      const Pass& pass
  ) const;
  const ops::RopeConfig& config() const { return config_; }

 private:
  ops::RopeConfig config_;
  mutable std::mutex mutex_;
  mutable std::optional<mx::array> table_;
  mutable int table_for_ = 0;  // dynamic scaling: the length it was made for
};

}  // namespace hearth::nn
