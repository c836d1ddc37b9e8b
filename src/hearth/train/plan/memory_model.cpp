#include "hearth/train/plan/memory_model.h"

#include <algorithm>
#include <map>

#include "hearth/base/aligned_buffer.h"
#include "hearth/kernels/quant/product.h"
#include "hearth/models/adapters.h"
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

std::size_t round_up(std::size_t n, std::size_t to) {
  return (n + to - 1) / to * to;
}

// By module.
using Ranks = std::map<std::string, int>;

Ranks ranks_of(
    const models::Blueprint& blueprint,
    const std::optional<nn::LoraConfig>& lora
) {
  Ranks ranks;
  if (!lora) return ranks;
  for (const auto* w : models::lora_targets(blueprint, *lora)) {
    ranks.emplace(w->module(), lora->rank);
  }
  return ranks;
}

// The first block stands for all.
PassShape pass_shape(
    const models::Blueprint& blueprint,
    const MemoryQuestion& q
) {
  using io::Role;
  PassShape p;
  p.model = q.model;
  p.trained = !q.lora;
  p.activate_again = !q.model.gate && !q.lora;
  p.adapter_noise = q.lora && q.lora->dropout > 0;
  p.scales_rows = q.lora && q.lora->dora;
  p.joined = !p.adapter_noise && !p.scales_rows && q.quantized.empty();
  p.element = q.bf16 ? 2 : 4;
  p.checkpointed = q.checkpointed;
  const Ranks ranks = ranks_of(blueprint, q.lora);
  for (const auto& w : blueprint.weights()) {
    if (w.part.layer == 0) p.roles.insert(w.part.role);
  }
  for (const auto* w : blueprint.projections(0)) {
    const auto rank = ranks.find(w->module());
    const LinearShape shape{
        w->shape[1], w->shape[0], rank == ranks.end() ? 0 : rank->second
    };
    switch (w->part.role) {
      case Role::attention_out:
        p.attention_out = shape;
        break;
      case Role::gate:
      case Role::up:
        p.mlp_in.push_back(shape);
        break;
      case Role::down:
        p.mlp_out = shape;
        break;
      default:
        p.attention_in.push_back(shape);
    }
  }
  return p;
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
    PassShape shape,
    const MemoryQuestion& q,
    std::int64_t length
) {
  const std::int64_t rows = std::max<std::int64_t>(1, q.step_tokens / length);
  shape.length = length;
  const std::int64_t each = rows_at(q, length), rest = rows % each;
  shape.rows = each;
  // Further ones take nothing new.
  for (int i = 0; i < std::min<std::int64_t>(2, rows / each); ++i) {
    walk_pass(pool, shape, true);
  }
  shape.rows = rest;
  if (rest > 0) walk_pass(pool, shape, true);
  shape.rows = each;
  walk_pass(pool, shape, false);
}

// Of the lengths whose micro-batches have as many tokens, the arrays are of the
// same sizes and serve all; before the others they are given back, so that the
// run takes what the largest takes.
BufferPool walk_run(const PassShape& shape, const MemoryQuestion& q) {
  std::map<std::int64_t, BufferPool> pools;  // by tokens
  for (const auto length : q.lengths) {
    walk_step(pools[rows_at(q, length) * length], shape, q, length);
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

// What ops pack for themselves, in the order of one product at a time.
std::size_t packing_scratch(const GemmFamily& family, const PassShape& shape) {
  const auto of = [&](const std::vector<LinearShape>& all) {
    std::size_t forward = 0, backward = 0;
    for (const LinearShape& l : all) {
      forward += family.packed_bytes(l.out, l.in);
      backward += family.packed_bytes(l.in, l.out);
    }
    return std::max(forward, backward);
  };
  return std::max(
      {of(shape.attention_in), of({shape.attention_out}), of(shape.mlp_in),
       of({shape.mlp_out})}
  );
}

std::size_t scratch_bytes(
    const MemoryQuestion& q,
    const GemmFamily& family,
    const PassShape& shape,
    const std::vector<PlannedWeight>& all
) {
  const auto length = longest(q);
  std::size_t most =
      std::max(head_scratch(q, family, all), attention_scratch(q, length));
  long widest = std::max(shape.mlp_out.in, shape.attention_out.in);
  widest = std::max<long>(widest, q.model.dim);
  const long tokens = std::min(q.rows * length, q.step_tokens);
  std::size_t products =
      ops::weight_gradient_scratch_bytes(family, tokens, widest, q.threads);
  if (!q.packed_all && !q.lora) products += packing_scratch(family, shape);
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

struct Parts {
  MemoryTable table;
  std::size_t live = 0;  // of arrays, at once
};

Parts predict(const MemoryQuestion& q) {
  const models::Blueprint blueprint(q.model);
  const GemmFamily& family =
      ops::gemm_family(*q.table, q.bf16 ? GemmScalar::bf16 : GemmScalar::f32);
  const auto all = planned_weights(blueprint, q.lora, q.quantized, q.bf16);
  // The model it started from may be held as a second one.
  const models::WeightPlan start(
      models::Use::inference, q.bf16 ? mlx::core::bfloat16 : mlx::core::float32
  );
  Parts parts;
  MemoryTable& t = parts.table;
  for (const PlannedWeight& w : all) {
    t.weights += held_bytes(w);
    if (w.spec.trainable) {
      if (w.columns() > 1) t.gradients += leaf_bytes(4 * w.spec.elements());
      t.optimizer += state_bytes(q.optim, w);
    }
    const bool kept = q.packed_all || !w.spec.trainable || w.is_table();
    if (kept) t.packed += packed_bytes(family, w);
    if (q.start_model && !q.lora) {
      PlannedWeight frozen = w;
      frozen.spec.trainable = false;
      frozen.forms = start.forms(frozen.spec);
      t.weights += held_bytes(frozen);
      t.packed += packed_bytes(family, frozen);
    }
  }
  t.optimizer += muon_workspace(q.optim, all);
  const PassShape shape = pass_shape(blueprint, q);
  const BufferPool pool = walk_run(shape, q);
  t.activations = pool.resident();
  t.scratch = scratch_bytes(q, family, shape, all);
  constexpr std::size_t kBytesPerToken = 20;  // ids, targets, positions, ...
  t.data = static_cast<std::size_t>(q.step_tokens * (q.prefetch + 2)) *
           kBytesPerToken;
  t.process = kProcessBytes;
  parts.live = pool.live_peak();
  return parts;
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
  return predict(q).table;
}

std::size_t predict_charged(const MemoryQuestion& q) {
  const Parts p = predict(q);
  const MemoryTable& t = p.table;
  return t.weights + t.packed + t.gradients + t.optimizer + t.scratch + p.live;
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
