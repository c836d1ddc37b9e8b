#include "hearth/models/save.h"

#include <map>

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic/op.h"

namespace hearth::models {
namespace {

// Row-major, in dtype, transposed where the checkpoint has it so.
mx::array stored_form(mx::array value, bool transposed, mx::Dtype dtype) {
  if (dtype == mx::float16) {
    value = mx::astype(value, dtype);
  } else if (value.dtype() != dtype) {
    value = ops::cast(value, dtype);
  }
  if (transposed) value = mx::transpose(value);
  value = mx::contiguous(value);
  value.eval();
  return value;
}

io::TensorData bytes_of(mx::array value) {
  auto keep = std::make_shared<mx::array>(std::move(value));
  const auto* bytes = static_cast<const std::byte*>(keep->data<void>());
  return {{bytes, keep->nbytes()}, keep};
}

io::TensorToWrite described(const nn::Weight& p, io::TensorType type) {
  io::TensorToWrite t;
  t.name = p.name;
  t.type = type;
  t.shape.assign(p.shape.begin(), p.shape.end());
  if (p.transposed) std::swap(t.shape[0], t.shape[1]);
  return t;
}

bool is_adapter(const nn::Weight& p) {
  return p.part.role == io::Role::adapter;
}

void check_finite(const mx::array& value, const std::string& name) {
  if (mx::all(mx::isfinite(value)).item<bool>()) return;
  throw FormatError(
      "tensor " + name + " has numbers beyond 65504, which fp16 cannot hold",
      "bf16 or fp32 can"
  );
}

}  // namespace

std::vector<io::TensorToWrite> tensors_to_write(
    const Decoder& decoder,
    mx::Dtype dtype
) {
  std::vector<io::TensorToWrite> tensors;
  for (const nn::Weight* p : decoder.parameters().all()) {
    const bool dense = p->form() == nn::WeightForm::master ||
                       p->form() == nn::WeightForm::rounded;
    if (!dense) {
      throw UsageError(
          "[models.tensors_to_write] " + p->name +
          " must be dense to be written"
      );
    }
    auto t = described(
        *p, dtype == mx::float32 ? io::TensorType::f32 : io::TensorType::bf16
    );
    t.data = [p, dtype] {
      return bytes_of(stored_form(p->value(), p->transposed, dtype));
    };
    tensors.push_back(std::move(t));
  }
  return tensors;
}

std::vector<io::TensorToWrite> tensors_to_write(
    const LoadedModel& model,
    io::TensorType type
) {
  const auto dtype = type == io::TensorType::f32    ? mx::float32
                     : type == io::TensorType::bf16 ? mx::bfloat16
                                                    : mx::float16;
  std::map<const nn::Weight*, const nn::Lora*> adapters;
  for (const nn::Linear* linear : model.decoder->linears()) {
    if (linear->lora()) adapters[&linear->weight()] = linear->lora();
  }
  std::vector<io::TensorToWrite> tensors;
  for (const nn::Weight* p : model.decoder->parameters().all()) {
    if (is_adapter(*p)) continue;
    const auto at = adapters.find(p);
    const nn::Lora* lora = at == adapters.end() ? nullptr : at->second;
    auto t = described(*p, type);
    t.data = [&model, p, lora, dtype] {
      auto value = read_parameter(*model.source, *p);
      if (lora != nullptr) value = lora->merged(value);
      value = stored_form(std::move(value), p->transposed, dtype);
      if (dtype == mx::float16) check_finite(value, p->name);
      return bytes_of(std::move(value));
    };
    tensors.push_back(std::move(t));
  }
  return tensors;
}

}  // namespace hearth::models
