#include "hearth/train/plan/described_model.h"

#include <algorithm>

#include "hearth/models/adapters.h"
#include "hearth/nn/linear.h"
#include "hearth/ops/dry_run.h"
#include "hearth/ops/execution.h"
#include "hearth/ops/linear/cpu_operand.h"

namespace hearth::train {
namespace {

std::shared_ptr<const ops::QuantizedWeight> described_codes(
    const kernels::PackedLayout& layout
) {
  const mx::Shape shape{
      static_cast<int>(layout.panels), static_cast<int>(layout.panel_bytes)
  };
  return std::make_shared<const ops::QuantizedWeight>(
      ops::QuantizedWeight::of_packed(
          layout, ops::described_leaf(shape, mx::uint8)
      )
  );
}

// Gives the weight the forms it will have, without numbers.
void describe(
    nn::Weight& w,
    const PlannedWeight& planned,
    const kernels::Table& table
) {
  const models::WeightForms& forms = planned.forms;
  std::optional<mx::array> rows;
  if (forms.value) rows = ops::described_leaf(w.shape, *forms.value);
  if (forms.quantized) return w.set(described_codes(planned.layout()), rows);
  std::shared_ptr<ops::PackedWeight> packed;
  if (forms.packed) {
    packed = ops::PackedWeight::described(
        planned.rows(), planned.columns(), ops::gemm_scalar(*forms.packed),
        forms.orders, table
    );
  }
  w.set(std::move(packed));
  if (rows) w.follow(*rows);
  if (!w.trainable || w.shape.size() != 2) return;
  w.home = std::make_shared<ops::GradientHome>(
      ops::described_leaf(w.shape, mx::float32)
  );
}

void describe_all(
    models::Decoder& model,
    const std::vector<PlannedWeight>& all,
    const kernels::Table& table
) {
  for (const PlannedWeight& planned : all) {
    nn::Weight& w = model.parameters().at(planned.spec.name);
    w.trainable = planned.spec.trainable;
    describe(w, planned, table);
  }
}

// DoRA divides by them.
void describe_norms(nn::Lora& lora, const nn::Weight& of) {
  if (!lora.config().dora) return;
  lora.set_base_norms(ops::described_leaf({of.shape[0]}, mx::float32));
}

void attach_described(
    models::Decoder& model,
    const models::Blueprint& blueprint,
    const nn::LoraConfig& config
) {
  const auto targets = models::lora_targets(blueprint, config);
  std::uint64_t index = 0;
  for (nn::Linear* linear : model.linears()) {
    const nn::Weight& w = linear->weight();
    if (std::ranges::find(targets, w.part, &nn::WeightSpec::part) ==
        targets.end()) {
      continue;
    }
    describe_norms(linear->attach(model.parameters(), config, index++), w);
  }
}

}  // namespace

mx::Dtype compute_type(const MemoryQuestion& q) {
  return q.bf16 ? mx::bfloat16 : mx::float32;
}

std::unique_ptr<models::Decoder> described_model(const MemoryQuestion& q) {
  auto model = std::make_unique<models::Decoder>(q.model);
  const models::Blueprint blueprint(q.model);
  if (q.lora) attach_described(*model, blueprint, *q.lora);
  describe_all(
      *model,
      planned_weights(blueprint, q.lora, q.quantized, q.bf16, q.packed_all),
      *q.table
  );
  model->set_checkpointing(q.checkpointed);
  return model;
}

std::vector<PlannedWeight> start_weights(
    const models::DecoderConfig& config,
    const QuantizedMatrices& quantized,
    mx::Dtype compute
) {
  const models::WeightPlan plan(models::Use::inference, compute);
  const models::Blueprint blueprint(config);
  std::vector<PlannedWeight> all;
  for (nn::WeightSpec w : blueprint.weights()) {
    w.trainable = false;
    std::optional<kernels::QuantFormat> format;
    const auto at = quantized.find(w.name);
    if (at != quantized.end()) format = at->second;
    all.push_back({w, plan.forms(w, format)});
  }
  return all;
}

std::unique_ptr<models::Decoder> described_start(
    const models::DecoderConfig& config,
    const QuantizedMatrices& quantized,
    mx::Dtype compute
) {
  auto model = std::make_unique<models::Decoder>(config);
  describe_all(
      *model, start_weights(config, quantized, compute),
      ops::current_execution().kernels
  );
  return model;
}

std::unique_ptr<nn::LoraSet> described_adapters(
    models::Decoder& model,
    mx::Dtype compute
) {
  auto all = std::make_unique<nn::LoraSet>();
  std::uint64_t index = 0;
  for (const nn::Linear* linear : model.linears()) {
    if (linear->lora() == nullptr) continue;
    auto lora = std::make_unique<nn::Lora>(
        all->parameters, linear->weight(), linear->lora()->config(), index++
    );
    describe_norms(*lora, linear->weight());
    all->layers.emplace(linear->name(), std::move(lora));
  }
  // As models::read_adapter settles them, before they are frozen.
  const models::WeightPlan plan(models::Use::inference, compute);
  for (nn::Weight* w : all->parameters.trainable()) {
    const PlannedWeight planned{*w, plan.forms(*w)};
    w->trainable = false;
    describe(*w, planned, ops::current_execution().kernels);
  }
  return all;
}

}  // namespace hearth::train
