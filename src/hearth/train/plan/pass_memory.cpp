#include "hearth/train/plan/pass_memory.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include "hearth/models/adapters.h"
#include "hearth/nn/linear.h"
#include "hearth/ops/linear/cpu_operand.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/plan/weight_memory.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

mx::Dtype compute_type(const MemoryQuestion& q) {
  return q.bf16 ? mx::bfloat16 : mx::float32;
}

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
    nn::Lora& lora = linear->attach(model.parameters(), config, index++);
    if (config.dora) {
      lora.set_base_norms(ops::described_leaf({w.shape[0]}, mx::float32));
    }
  }
}

models::Decoder described_model(const MemoryQuestion& q) {
  models::Decoder model(q.model);
  const models::Blueprint blueprint(q.model);
  if (q.lora) attach_described(model, blueprint, *q.lora);
  for (const PlannedWeight& planned :
       planned_weights(blueprint, q.lora, q.quantized, q.bf16, q.packed_all)) {
    nn::Weight& w = *model.parameters().find(planned.spec.name);
    w.trainable = planned.spec.trainable;
    describe(w, planned, *q.table);
  }
  model.set_checkpointing(q.checkpointed);
  return model;
}

// A length of 1 says that no table of rotations is made for positions that
// nobody reads.
MicroBatch described_batch(int rows, int length) {
  const auto ints = [&] {
    return ops::described_leaf({rows, length}, mx::int32);
  };
  MicroBatch batch;
  batch.ids = ints(), batch.targets = ints(), batch.positions = ints();
  batch.weights = ops::described_leaf({rows, length}, mx::float32);
  batch.rows = rows, batch.length = 1;
  return batch;
}

bool same_pass(const MemoryQuestion& a, const MemoryQuestion& b) {
  return a.model == b.model && a.quantized == b.quantized && a.bf16 == b.bf16 &&
         a.lora == b.lora && a.label_smoothing == b.label_smoothing &&
         a.checkpointed == b.checkpointed && a.packed_all == b.packed_all &&
         a.table == b.table;
}

}  // namespace

PassMemory::PassMemory(MemoryQuestion question)
    : question_(std::move(question)), model_(described_model(question_)) {}

std::shared_ptr<PassMemory> PassMemory::of(const MemoryQuestion& q) {
  constexpr std::size_t kRemembered = 32;
  static std::mutex mutex;
  // Never destroyed: arrays may not outlive MLX.
  static auto& all = *new std::deque<std::shared_ptr<PassMemory>>();
  const std::lock_guard lock(mutex);
  const auto at = std::ranges::find_if(all, [&](const auto& known) {
    return same_pass(known->question_, q);
  });
  if (at != all.end()) return *at;
  if (all.size() == kRemembered) all.pop_front();
  return all.emplace_back(std::make_shared<PassMemory>(q));
}

std::vector<ops::MemoryEvent> PassMemory::events_of(
    std::int64_t rows,
    std::int64_t length,
    bool gradients
) const {
  const ops::ScopedExecution execution(*question_.table);
  const mx::StreamContext on_cpu(mx::Device{mx::Device::cpu});
  LanguageModelOptions options;
  options.label_smoothing = question_.label_smoothing;
  const LanguageModel objective(options);
  MicroBatch batch =
      described_batch(static_cast<int>(rows), static_cast<int>(length));
  if (gradients && question_.lora && question_.lora->dropout > 0) {
    batch.noise = ops::described_leaf(batch.ids.shape(), mx::uint64);
  }
  const auto compute = compute_type(question_);
  ops::DryRun run;
  if (gradients) {
    for (nn::Weight* w : model_.parameters().trainable()) {
      if (w->home) w->home->clear();
    }
    auto graph = gradient_graph(model_, objective, {&batch, 1}, compute);
    auto all = std::move(graph.outputs);
    all.insert(
        all.end(), std::make_move_iterator(graph.gradients.begin()),
        std::make_move_iterator(graph.gradients.end())
    );
    graph.gradients.clear();
    run.eval(std::move(all));
  } else {
    auto value = objective(model_, batch, pass_of(batch, compute, false));
    run.eval({std::move(value.loss_sum), std::move(value.weight_sum)});
  }
  return run.events();
}

void PassMemory::walk(
    BufferPool& pool,
    std::int64_t rows,
    std::int64_t length,
    bool gradients
) {
  const std::lock_guard lock(mutex_);
  const auto key = std::tuple(rows, length, gradients);
  auto at = seen_.find(key);
  if (at == seen_.end()) {
    at = seen_.emplace(key, events_of(rows, length, gradients)).first;
  }
  // The micro-batch itself: ids, targets, positions, weights, segments.
  constexpr int kInputs = 5;
  std::vector<BufferPool::Id> inputs, ids;
  for (int i = 0; i < kInputs; ++i) {
    inputs.push_back(pool.take(static_cast<std::size_t>(rows * length) * 4));
  }
  for (const ops::MemoryEvent& e : at->second) {
    if (e.bytes > 0)
      ids.push_back(pool.take(e.bytes));
    else
      pool.drop(ids.at(static_cast<std::size_t>(e.buffer)));
  }
  for (const auto id : inputs) pool.drop(id);
}

}  // namespace hearth::train
