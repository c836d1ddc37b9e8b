#pragma once
// A weight matrix in a quantised format, one copy of it. On a CPU it is held in
// the layout the kernels run (kernels/quant/packed.h), on a GPU as MLX's affine
// arrays (gpu_weight.h); the file's arrays come back from either bit for bit.
// Formats that MLX has no product for are widened to bfloat16 on a GPU, beside
// the file's arrays.
#include <memory>
#include <optional>

#include "hearth/kernels/quant/product.h"
#include "hearth/ops/op.h"

namespace hearth::ops {

using kernels::QuantCompute;
using kernels::QuantFormat;

// A format's arrays as files hold them. Affine: codes uint32
// [rows, cols * bits / 32], scales and biases [rows, cols / group].
// Symmetric: codes uint8 [rows, bytes], scales [rows, groups]. GGUF: codes
// uint8 [rows, bytes].
struct QuantizedArrays {
  mx::array codes;
  std::optional<mx::array> scales, biases;
};

class GpuQuantized;

class QuantizedWeight {
 public:
  // Throws UsageError unless dtypes and shapes are what the format says for a
  // matrix of `cols` columns. The arrays are not kept on a CPU.
  QuantizedWeight(
      const QuantFormat& format,
      int cols,
      const QuantizedArrays& arrays,
      mx::StreamOrDevice s = {}
  );
  // Rounds w[rows, cols], float32 or bfloat16, to the format.
  static QuantizedWeight quantize(
      const mx::array& w,
      const QuantFormat& format,
      mx::StreamOrDevice s = {}
  );

  // Over bytes that are packed already, [panels, panel_bytes] uint8, for a CPU.
  // Throws UsageError when they are not as large as the layout says.
  static QuantizedWeight of_packed(
      const kernels::PackedLayout& layout,
      mx::array packed
  );

  const QuantFormat& format() const { return layout_.format; }
  int rows() const { return static_cast<int>(layout_.rows); }
  int cols() const { return static_cast<int>(layout_.cols); }
  std::size_t nbytes() const;

  // The file's arrays, as they came in.
  QuantizedArrays arrays() const;
  // The weights, float32 or bfloat16.
  mx::array dequantize(mx::Dtype dtype) const;

  // What products read. On a CPU the packed bytes; on a GPU MLX's affine
  // arrays or, of formats that it lacks, the weights in bfloat16.
  const kernels::PackedLayout& layout() const { return layout_; }
  const std::optional<mx::array>& packed() const { return packed_; }
  const GpuQuantized* as_affine() const { return gpu_.get(); }
  const std::optional<mx::array>& as_wide() const { return wide_; }

 private:
  QuantizedWeight() = default;
  void hold(const QuantizedArrays& arrays, mx::StreamOrDevice s);

  kernels::PackedLayout layout_;
  std::optional<mx::array> packed_;
  std::shared_ptr<const GpuQuantized> gpu_;
  // A GPU's, of formats that MLX lacks.
  std::optional<QuantizedArrays> arrays_;
  std::optional<mx::array> wide_;
};

}  // namespace hearth::ops
