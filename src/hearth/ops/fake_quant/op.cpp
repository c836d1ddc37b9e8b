// Checks what is to be rounded and chooses the form that rounds it.
#include "hearth/ops/fake_quant/op.h"

#include "hearth/base/error.h"
#include "hearth/ops/fake_quant/faces_impl.h"

namespace hearth::ops {

mx::array fake_quant(
    const mx::array& w,
    const kernels::QuantFormat& format,
    mx::StreamOrDevice s
) {
  with_dtype("ops.fake_quant", w.dtype(), [](auto*) {});
  if (w.ndim() == 0) {
    throw UsageError("[ops.fake_quant] w must have at least one dimension");
  }
  format.check("ops.fake_quant", w.shape(-1));
  if (w.size() == 0) return w;
  if (on_cpu(s)) return fake_quant_cpu(w, format, s);
  if (fake_quant_gpu_has(format)) return fake_quant_gpu(w, format, s);
  return fake_quant_cpu(w, format, mx::Device::cpu);
}

}  // namespace hearth::ops
