#include "hearth/train/plan/memory_model.h"

#include <algorithm>
#include <map>

#include "hearth/base/aligned_buffer.h"
#include "hearth/kernels/quant/product.h"
#include "hearth/ops/gemm.h"
#include "hearth/ops/head_loss/cpu_chunks.h"
#include "hearth/train/plan/pass_memory.h"
#include "hearth/train/plan/weight_memory.h"

namespace hearth::train {
namespace {

using kernels::GemmFamily;
using kernels::GemmScalar;

// Pages of code and libraries that training touches and a bare start does not,
// the tokenizer, stacks and queues: what a model of a few kilobytes leaves
// over.
constexpr std::size_t kProcessBytes = std::size_t{10} << 20;
// Pages of a quantised base's file: 5.5 MiB more of them than without one were
// resident in a run (docs/log/train.md, "Memory is planned").
constexpr std::size_t kQuantizedFileBytes = std::size_t{5} << 20;

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

std::int64_t longest(const MemoryQuestion& q) {
  return *std::ranges::max_element(q.lengths);
}

// Of a micro-batch of rows that long.
std::int64_t rows_at(const MemoryQuestion& q, std::int64_t length) {
  const std::int64_t all = std::max<std::int64_t>(1, q.step_tokens / length);
  const std::int64_t equal = q.rows * longest(q) / length;
  return std::clamp<std::int64_t>(equal, 1, all);
}

// The buffers of a whole step: whole micro-batches, the rest of the rows, then
// a validation.
void walk_step(
    BufferPool& pool,
    PassMemory& pass,
    const MemoryQuestion& q,
    std::int64_t length
) {
  const std::int64_t rows = std::max<std::int64_t>(1, q.step_tokens / length);
  const std::int64_t each = rows_at(q, length), rest = rows % each;
  // Further ones take nothing new.
  for (int i = 0; i < std::min<std::int64_t>(2, rows / each); ++i) {
    pass.walk(pool, each, length, true);
  }
  if (rest > 0) pass.walk(pool, rest, length, true);
  pass.walk(pool, each, length, false);
}

// Of the lengths whose micro-batches have as many tokens, the arrays are of the
// same sizes and serve all; before the others they are given back, so that the
// run takes what the largest takes.
BufferPool walk_run(const MemoryQuestion& q) {
  const auto pass = PassMemory::of(q);
  std::map<std::int64_t, BufferPool> pools;  // by tokens
  for (const auto length : q.lengths) {
    walk_step(pools[rows_at(q, length) * length], *pass, q, length);
  }
  const auto most = std::ranges::max_element(pools, {}, [](const auto& p) {
    return p.second.resident();
  });
  return most->second;
}

// A head that is held quantised has no packed copies: the loss makes its own.
std::size_t head_scratch(
    const MemoryQuestion& q,
    const GemmFamily& family,
    const std::vector<PlannedWeight>& all
) {
  ops::HeadLossTask t;
  t.tokens = std::min(q.rows * longest(q), q.step_tokens);
  t.vocabulary = q.model.vocab, t.dim = q.model.dim;
  t.type = q.bf16 ? GemmScalar::bf16 : GemmScalar::f32;
  t.terms.soft_cap = q.model.final_softcap;
  t.terms.label_smoothing = q.label_smoothing;
  t.dh = &t;
  t.packed_later = std::ranges::none_of(all, [](const PlannedWeight& w) {
    return w.is_table() && w.forms.quantized;
  });
  t.scratch_limit = ops::HeadLossOptions{}.scratch_limit;
  return ops::head_loss_scratch_bytes(t, family, q.threads);
}

std::size_t attention_scratch(const MemoryQuestion& q, std::int64_t length) {
  kernels::AttentionGradArgs g;
  auto& a = g.forward;
  a.heads = q.model.heads, a.kv_heads = q.model.kv_heads;
  a.dim = q.model.head_dim;
  a.queries = a.keys = length;
  a.query_type = a.kv_type = q.bf16 ? kernels::AttentionType::kBfloat16
                                    : kernels::AttentionType::kFloat32;
  a.causal = true;
  const auto& k = *q.table->attention;
  const std::size_t each =
      std::max(k.forward_scratch(a), k.backward_scratch(g));
  return round_up(each, 64) * static_cast<std::size_t>(q.threads);
}

// What ops pack for themselves, in the order of one product at a time. Those
// of one input are one op; the first block stands for all.
std::size_t packing_scratch(
    const GemmFamily& family,
    const models::Blueprint& blueprint
) {
  using io::Role;
  const auto first_of = [](Role role) {
    if (role == Role::key || role == Role::value) return Role::query;
    return role == Role::up ? Role::gate : role;
  };
  std::map<Role, std::size_t> forward, backward;
  for (const auto* w : blueprint.projections(0)) {
    const long out = w->shape[0], in = w->shape[1];
    forward[first_of(w->part.role)] += family.packed_bytes(out, in);
    backward[first_of(w->part.role)] += family.packed_bytes(in, out);
  }
  std::size_t most = 0;
  for (const auto& all : {forward, backward}) {
    for (const auto& [role, bytes] : all) most = std::max(most, bytes);
  }
  return most;
}

std::size_t scratch_bytes(
    const MemoryQuestion& q,
    const GemmFamily& family,
    const models::Blueprint& blueprint,
    const std::vector<PlannedWeight>& all
) {
  const auto length = longest(q);
  std::size_t most =
      std::max(head_scratch(q, family, all), attention_scratch(q, length));
  long widest = q.model.dim;
  for (const auto* w : blueprint.projections(0)) {
    widest = std::max<long>(widest, w->shape[1]);
  }
  const long tokens = std::min(q.rows * length, q.step_tokens);
  std::size_t products =
      ops::weight_gradient_scratch_bytes(family, tokens, widest, q.threads);
  if (!q.packed_all && !q.lora) products += packing_scratch(family, blueprint);
  most = std::max(most, products);
  for (const PlannedWeight& w : all) {
    // The loss reads a head by its rows.
    if (!w.forms.quantized || w.is_table()) continue;
    const auto layout = w.layout();
    const auto exact = kernels::QuantCompute::kExact;
    most = std::max(
        {most, kernels::quant_product_scratch(layout, tokens, exact, q.threads),
         kernels::quant_gradient_scratch(layout, tokens, q.threads)}
    );
  }
  return AlignedBuffer::taken(most);
}

// All but activations.
MemoryTable predict_fixed(const MemoryQuestion& q) {
  const models::Blueprint blueprint(q.model);
  const GemmFamily& family =
      ops::gemm_family(*q.table, q.bf16 ? GemmScalar::bf16 : GemmScalar::f32);
  const auto all =
      planned_weights(blueprint, q.lora, q.quantized, q.bf16, q.packed_all);
  // The model it started from may be held as a second one.
  const models::WeightPlan start(
      models::Use::inference, q.bf16 ? mlx::core::bfloat16 : mlx::core::float32
  );
  MemoryTable t;
  for (const PlannedWeight& w : all) {
    t.weights += held_bytes(w);
    if (w.spec.trainable) {
      if (w.columns() > 1) t.gradients += leaf_bytes(4 * w.spec.elements());
      t.optimizer += state_bytes(q.optim, w);
    }
    t.packed += packed_bytes(family, w);
    if (q.start_model && !q.lora) {
      PlannedWeight frozen = w;
      frozen.spec.trainable = false;
      frozen.forms = start.forms(frozen.spec);
      t.weights += held_bytes(frozen);
      t.packed += packed_bytes(family, frozen);
    }
  }
  t.optimizer += muon_workspace(q.optim, all);
  t.scratch = scratch_bytes(q, family, blueprint, all);
  constexpr std::size_t kBytesPerToken = 20;  // ids, targets, positions, ...
  t.data = static_cast<std::size_t>(q.step_tokens * (q.prefetch + 2)) *
           kBytesPerToken;
  t.process = kProcessBytes;
  if (!q.quantized.empty()) t.process += kQuantizedFileBytes;
  return t;
}

}  // namespace

std::size_t MemoryTable::total() const {
  return weights + packed + gradients + optimizer + activations + scratch +
         data + process;
}

std::vector<std::pair<std::string, std::size_t>> MemoryTable::rows() const {
  return {
      {"weights", weights},
      {"packed copies", packed},
      {"gradients", gradients},
      {"optimiser", optimizer},
      {"activations", activations},
      {"head and scratch", scratch},
      {"data", data},
      {"process", process}
  };
}

MemoryTable predict_memory(const MemoryQuestion& q) {
  MemoryTable t = predict_fixed(q);
  t.activations = walk_run(q).resident();
  return t;
}

bool fits(const MemoryQuestion& q, std::size_t budget) {
  MemoryTable t = predict_fixed(q);
  if (t.total() > budget) return false;
  t.activations = walk_run(q).resident();
  return t.total() <= budget;
}

std::size_t predict_charged(const MemoryQuestion& q) {
  const MemoryTable t = predict_fixed(q);
  return t.weights + t.packed + t.gradients + t.optimizer + t.scratch +
         walk_run(q).live_peak();
}

ParameterCount count_parameters(
    const models::DecoderConfig& model,
    const std::optional<nn::LoraConfig>& lora
) {
  ParameterCount count;
  for (const PlannedWeight& w :
       planned_weights(models::Blueprint(model), lora, {}, true)) {
    const std::size_t n = w.spec.elements();
    count.all += n;
    if (w.spec.trainable) count.trained += n;
    if (w.is_table() && !w.spec.matrix) count.gathered += n;
  }
  return count;
}

}  // namespace hearth::train
