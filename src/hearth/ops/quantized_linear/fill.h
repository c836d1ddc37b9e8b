#pragma once
// A quantised weight for the CPU, made a few rows at a time: neither the dense
// matrix nor the file's arrays ever exist whole beside the packed one.
#include <memory>

#include "hearth/ops/execution.h"
#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::ops {

class QuantizedFill {
 public:
  // Row ranges begin at multiples of this and end at one or at the last row;
  // different ranges may be filled by different threads.
  static constexpr long kRowGrain = kernels::PackedLayout::kPanelRows;

  // Throws UsageError unless the format takes `cols`, OutOfMemory.
  QuantizedFill(const QuantFormat& format, long rows, long cols);

  // Scratch of round_rows(), a thread each.
  std::size_t scratch_bytes() const;
  // Rounds rows [begin, end), which lie densely at w, to the format.
  void round_rows(
      const kernels::Table& table,
      const float* w,
      long begin,
      long end,
      void* scratch
  ) noexcept;
  // Takes rows [begin, end) as a file has them, from memory that holds nothing
  // but those.
  void take_rows(
      const kernels::QuantRows& rows_alone,
      long begin,
      long end
  ) noexcept;

  std::shared_ptr<const QuantizedWeight> finish();

 private:
  kernels::PackedLayout layout_;
  mx::array packed_;

  std::uint8_t* panel(long row);
};

}  // namespace hearth::ops
