#include "hearth/train/plan/weight_memory.h"

#include <set>

#include "hearth/base/aligned_buffer.h"
#include "hearth/kernels/quant/product.h"
#include "hearth/models/adapters.h"
#include "hearth/nn/parameter_set.h"
#include "hearth/optim/optimizer_kind.h"

namespace hearth::train {

bool PlannedWeight::is_table() const {
  return io::is_token_table(spec.part.role);
}

kernels::PackedLayout PlannedWeight::layout() const {
  return kernels::packed_layout(*forms.quantized, rows(), columns());
}

std::vector<PlannedWeight> planned_weights(
    const models::Blueprint& blueprint,
    const std::optional<nn::LoraConfig>& lora,
    const QuantizedMatrices& quantized,
    bool bf16,
    bool packed_all
) {
  const models::WeightPlan plan(
      lora ? models::Use::frozen_base : models::Use::training,
      bf16 ? mlx::core::bfloat16 : mlx::core::float32, true, {},
      packed_all ? models::PackedCopies::all : models::PackedCopies::head
  );
  std::vector<PlannedWeight> all;
  for (nn::WeightSpec w : blueprint.weights()) {
    w.trainable = !lora;
    std::optional<kernels::QuantFormat> format;
    const auto at = quantized.find(w.name);
    if (at != quantized.end()) format = at->second;
    all.emplace_back(w, plan.forms(w, format));
  }
  if (!lora) return all;
  for (const nn::WeightSpec* w : models::lora_targets(blueprint, *lora)) {
    const nn::LoraSpecs specs = nn::lora_specs(*w, *lora);
    all.push_back({specs.a, plan.forms(specs.a)});
    all.push_back({specs.b, plan.forms(specs.b)});
    if (!specs.magnitude) continue;
    all.push_back({*specs.magnitude, plan.forms(*specs.magnitude)});
  }
  return all;
}

std::size_t leaf_bytes(std::size_t bytes) {
  return AlignedBuffer::taken(bytes + AlignedBuffer::kAlignment);
}

std::size_t held_bytes(const PlannedWeight& w) {
  std::size_t bytes = 0;
  if (w.forms.quantized) bytes += leaf_bytes(w.layout().bytes());
  if (w.forms.value) {
    bytes += leaf_bytes(w.spec.elements() * mlx::core::size_of(*w.forms.value));
  }
  return bytes;
}

std::size_t packed_bytes(const kernels::GemmFamily& f, const PlannedWeight& w) {
  if (!w.forms.packed) return 0;
  const long n = w.rows(), k = w.columns();
  const std::size_t forward = AlignedBuffer::taken(f.packed_bytes(n, k));
  return w.forms.orders == ops::PackedOrders::forward
             ? forward
             : forward + AlignedBuffer::taken(f.packed_bytes(k, n));
}

std::size_t state_bytes(const optim::OptimConfig& c, const PlannedWeight& w) {
  std::size_t bytes = 0;
  const optim::OptimizerKind& kind = optim::kind_of(c, w.spec);
  for (const ops::StateArray& a : kind.state(c, w.spec.shape)) {
    bytes += leaf_bytes(a.bytes());
  }
  return bytes;
}

std::size_t update_workspace(
    const optim::OptimConfig& c,
    const std::vector<PlannedWeight>& all
) {
  std::set<std::vector<int>> seen;
  std::size_t bytes = 0;
  for (const PlannedWeight& w : all) {
    if (!w.spec.trainable) continue;
    const optim::OptimizerKind& kind = optim::kind_of(c, w.spec);
    const auto& shape = w.spec.shape;
    if (kind.workspace == nullptr ||
        !seen.insert({shape.begin(), shape.end()}).second) {
      continue;
    }
    bytes += kind.workspace(shape);
  }
  return bytes;
}

}  // namespace hearth::train
