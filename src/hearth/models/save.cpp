#include "hearth/models/save.h"

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic.h"

namespace hearth::models {
namespace {

// Row-major, in dtype, turned round where the checkpoint has it so.
mx::array stored_form(const nn::Parameter& p, mx::Dtype dtype) {
  auto value = p.value.dtype() == dtype ? p.value : ops::cast(p.value, dtype);
  if (p.transposed) value = mx::transpose(value);
  value = mx::contiguous(value);
  value.eval();
  return value;
}

}  // namespace

std::vector<io::TensorToWrite> tensors_to_write(
    const Decoder& decoder,
    mx::Dtype dtype
) {
  std::vector<io::TensorToWrite> tensors;
  for (const nn::Parameter* p : decoder.parameters().all()) {
    if (p->value.size() != p->elements()) {
      throw UsageError(
          "[models.tensors_to_write] " + p->name +
          " must be dense to be written"
      );
    }
    io::TensorToWrite t;
    t.name = p->name;
    t.type = dtype == mx::float32 ? io::TensorType::f32 : io::TensorType::bf16;
    t.shape.assign(p->shape.begin(), p->shape.end());
    if (p->transposed) std::swap(t.shape[0], t.shape[1]);
    t.data = [p, dtype] {
      auto keep = std::make_shared<mx::array>(stored_form(*p, dtype));
      const auto* bytes = static_cast<const std::byte*>(keep->data<void>());
      return io::TensorData{{bytes, keep->nbytes()}, keep};
    };
    tensors.push_back(std::move(t));
  }
  return tensors;
}

}  // namespace hearth::models
