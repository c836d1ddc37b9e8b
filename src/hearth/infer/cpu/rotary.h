#pragma once
// The sines and cosines of rotary position embeddings, a table that grows with
// the longest sequence.
#include <cstdint>
#include <vector>

#include "hearth/kernels/table.h"
#include "hearth/ops/rope/frequencies.h"

namespace hearth::infer {

// Heads of rows that are rotated where they lie.
struct RotaryRows {
  float* data = nullptr;
  long heads = 0, head_dim = 0, stride = 0;
  const std::int32_t* positions = nullptr;  // one a row
};

class RotaryTable {
 public:
  // The config must outlive it, and not scale by the length in use.
  explicit RotaryTable(const ops::RopeConfig& config) : config_(&config) {}

  // Extends the table to all positions below `positions`.
  void grow(long positions);
  void rotate(
      const kernels::Table& kernels,
      const RotaryRows& rows,
      long begin,
      long end
  ) const noexcept;

 private:
  const ops::RopeConfig* config_;
  std::vector<float> table_;
  long positions_ = 0;
};

}  // namespace hearth::infer
