// Checks a product with a quantised weight and chooses the form that runs it.
#include "hearth/ops/quantized_linear/op.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/quantized_linear/faces_impl.h"

namespace hearth::ops {

mx::array quantized_linear(
    const mx::array& x,
    const QuantizedWeight& w,
    QuantCompute compute,
    mx::StreamOrDevice s
) {
  with_dtype("ops.quantized_linear", x.dtype(), [](auto*) {});
  if (x.ndim() == 0 || x.shape(-1) != w.cols()) {
    throw UsageError(
        fmt::format(
            "[ops.quantized_linear] x must have a last dimension of {}, got "
            "shape [{}]",
            w.cols(), fmt::join(x.shape(), ", ")
        )
    );
  }
  if (x.size() == 0) {
    mx::Shape shape = x.shape();
    shape.back() = w.rows();
    return mx::zeros(shape, x.dtype(), s);
  }
  if (!on_cpu(s)) return quantized_linear_gpu(x, w, compute, s);
  if (!w.packed()) {
    throw UsageError(
        "[ops.quantized_linear] a weight held for a GPU cannot run on a CPU "
        "stream"
    );
  }
  return quantized_linear_cpu(x, w, compute, s);
}

}  // namespace hearth::ops
