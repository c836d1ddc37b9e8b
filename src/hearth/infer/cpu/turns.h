#pragma once
// A table of rotary turns that grows with the longest sequence.
#include <cstdint>
#include <vector>

#include "hearth/kernels/table.h"
#include "hearth/ops/rope/frequencies.h"

namespace hearth::infer {

// Heads of rows that are turned where they lie.
struct TurnedRows {
  float* data = nullptr;
  long heads = 0, head_dim = 0, stride = 0;
  const std::int32_t* positions = nullptr;  // one a row
};

class CpuTurns {
 public:
  // The config must outlive it, and not scale by the length in use.
  explicit CpuTurns(const ops::RopeConfig& config) : config_(&config) {}

  // Makes positions below that one known.
  void grow(long positions);
  void turn(
      const kernels::Table& kernels,
      const TurnedRows& rows,
      long begin,
      long end
  ) const noexcept;

 private:
  const ops::RopeConfig* config_;
  std::vector<float> table_;
  long positions_ = 0;
};

}  // namespace hearth::infer
