// A product with a quantised weight on a GPU, of MLX's ops: its own for formats
// that it has as affine codes (gpu_weight.h), a dense one for the others, whose
// weights are held widened.
#include "hearth/base/error.h"
#include "hearth/ops/quantized_linear/faces_impl.h"
#include "hearth/ops/quantized_linear/gpu_weight.h"

namespace hearth::ops {

mx::array quantized_linear_gpu(
    const mx::array& x,
    const QuantizedWeight& w,
    QuantCompute,
    mx::StreamOrDevice s
) {
  if (const GpuQuantized* affine = w.as_affine()) return affine->product(x, s);
  if (const auto& wide = w.as_wide()) {
    return mx::matmul(x, mx::transpose(mx::astype(*wide, x.dtype(), s), s), s);
  }
  throw UsageError(
      "[ops.quantized_linear] a weight packed for the CPU cannot run on a GPU "
      "stream"
  );
}

}  // namespace hearth::ops
