#pragma once
// One parameter on its way in: rows as the file has them go straight into the
// forms that are wanted (plain, packed for the products, quantised), a few
// rows at a time on all threads. What is held beside the result is a few rows
// a thread.
#include <memory>
#include <optional>
#include <vector>

#include "hearth/base/aligned_buffer.h"
#include "hearth/io/model_source.h"
#include "hearth/models/weight_plan.h"
#include "hearth/ops/quantized_linear/fill.h"

namespace hearth::models {
namespace mx = mlx::core;

// Seconds, summed over threads.
struct FillTimes {
  double convert = 0, pack = 0, quantize = 0;
};

class WeightFill {
 public:
  // Slices begin at a multiple of this many rows.
  static constexpr long kRowGrain = ops::PackedWeight::kRowGrain;

  // The tensor is dense: f32, f16 or bf16, its shape checked. Where it is
  // transposed against the parameter, all its rows come at once. Throws
  // FormatError for another type, OutOfMemory.
  WeightFill(
      nn::Weight& p,
      const io::TensorInfo& tensor,
      const WeightForms& forms
  );

  // Rows [begin, end) as the file has them, at any address. Throws FormatError
  // when a number is not finite.
  void rows(long begin, long end, const std::byte* bytes);
  // Puts the forms into the parameter.
  void finish();

  const FillTimes& times() const { return times_; }
  std::size_t row_bytes() const { return row_bytes_; }

 private:
  struct Block;

  nn::Weight& p_;
  const io::TensorInfo& tensor_;
  long rows_, cols_;
  std::size_t item_, row_bytes_;
  bool transposed_;
  std::optional<mx::array> value_;
  std::shared_ptr<ops::PackedWeight> packed_;
  std::unique_ptr<ops::QuantizedFill> quantized_;
  std::vector<AlignedBuffer> scratch_;  // a thread's each
  FillTimes times_;

  // Both return whether all numbers are finite.
  bool fill_block(const Block& block, FillTimes& times);
  bool copy_block(const Block& block, FillTimes& times);
  bool stays_bf16() const;
  void widen(const Block& block) const;
  std::size_t scratch_bytes() const;
};

}  // namespace hearth::models
