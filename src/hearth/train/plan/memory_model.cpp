#include "hearth/train/plan/memory_model.h"

#include <algorithm>
#include <map>
#include <set>

#include "hearth/base/aligned_buffer.h"
#include "hearth/kernels/optim.h"
#include "hearth/kernels/quant/product.h"
#include "hearth/models/decoder.h"
#include "hearth/ops/gemm.h"
#include "hearth/ops/head_loss/kernel_run.h"
#include "hearth/train/plan/pass_memory.h"

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

std::size_t leaf(std::size_t bytes) {
  return AlignedBuffer::taken(bytes + AlignedBuffer::kAlignment);
}

bool is_target(const nn::LoraConfig& lora, const std::string& layer) {
  return std::ranges::any_of(lora.targets, [&](const auto& pattern) {
    return nn::matches(pattern, layer);
  });
}

// A parameter as far as memory goes.
struct Matrix {
  std::string name;
  long n = 0, k = 1;
  bool matrix = false, trained = false;
  bool plain = false;  // the embedding or the head: rows are kept
  const kernels::QuantFormat* format = nullptr;  // held quantised in it

  kernels::PackedLayout layout() const {
    return kernels::packed_layout(*format, n, k);
  }
  std::size_t elements() const { return static_cast<std::size_t>(n * k); }
};

// Points into `quantized`.
std::vector<Matrix> matrices_of(
    models::Decoder& decoder,
    const std::optional<nn::LoraConfig>& lora,
    const QuantizedMatrices& quantized
) {
  std::vector<Matrix> all;
  for (const nn::Weight* p : decoder.parameters().all()) {
    Matrix m{p->name, p->shape.at(0)};
    if (p->shape.size() > 1) m.k = p->shape[1];
    m.matrix = p->matrix;
    m.trained = !lora;
    m.plain = p == &decoder.embedding() || p == &decoder.head();
    if (const auto at = quantized.find(p->name); at != quantized.end()) {
      m.format = &at->second;
    }
    all.push_back(std::move(m));
  }
  if (!lora) return all;
  for (const nn::Linear* l : decoder.linears()) {
    if (!is_target(*lora, l->name())) continue;
    const auto& shape = l->weight().shape;
    all.push_back({l->name() + ".lora_A", lora->rank, shape[1], true, true});
    all.push_back({l->name() + ".lora_B", shape[0], lora->rank, true, true});
    if (lora->dora) {
      all.push_back({l->name() + ".magnitude", shape[0], 1, false, true});
    }
  }
  return all;
}

std::size_t packed_bytes(const GemmFamily& f, const Matrix& m) {
  return AlignedBuffer::taken(f.packed_bytes(m.n, m.k)) +
         AlignedBuffer::taken(f.packed_bytes(m.k, m.n));
}

// Of what is not trained, beside packed copies: vectors, the rows that are
// gathered from or that the loss reads, and what is quantised.
std::size_t frozen_bytes(const Matrix& m, std::size_t element) {
  std::size_t bytes = 0;
  if (m.format != nullptr) bytes += leaf(m.layout().bytes());
  if (!m.matrix || m.plain)
    bytes += leaf((m.k > 1 ? element : 4) * m.elements());
  return bytes;
}

// State of one parameter (optim/optimizer.cpp says which rule it gets).
std::size_t state_bytes(const optim::OptimConfig& c, const Matrix& m) {
  const std::size_t n = m.elements();
  const std::size_t adamw = 2 * leaf(4 * n);
  if (c.name == "lion") return leaf(4 * n);
  if (c.name == "adamw8bit" && n >= 4096) {
    const auto block = static_cast<std::size_t>(kernels::kStateBlock);
    return 2 * leaf(n) + 2 * leaf((n + block - 1) / block * 4);
  }
  if (c.name == "adafactor") {
    const std::size_t sums = m.k == 1
                                 ? leaf(4 * n)
                                 : leaf(4 * static_cast<std::size_t>(m.n)) +
                                       leaf(4 * static_cast<std::size_t>(m.k));
    return sums + (c.adafactor.momentum != 0 ? leaf(4 * n) : 0);
  }
  const bool hidden =
      m.k > 1 && std::ranges::none_of(c.muon.exclude, [&](const auto& x) {
        return nn::matches(x, m.name);
      });
  return c.name == "muon" && hidden ? leaf(4 * n) : adamw;
}

// Muon's iteration: its arrays are kept by size once freed.
std::size_t muon_workspace(
    const optim::OptimConfig& c,
    const std::vector<Matrix>& all
) {
  if (c.name != "muon") return 0;
  std::set<std::pair<long, long>> seen;
  std::size_t bytes = 0;
  for (const Matrix& m : all) {
    if (!m.trained || m.k == 1 || m.plain || !seen.insert({m.n, m.k}).second) {
      continue;
    }
    const auto least = static_cast<std::size_t>(std::min(m.n, m.k));
    bytes += 20 * m.elements() + 20 * least * least;
  }
  return bytes;
}

LinearShape shape_of(
    const nn::Linear& l,
    const std::optional<nn::LoraConfig>& lora
) {
  LinearShape s;
  s.out = l.weight().shape[0], s.in = l.weight().shape[1];
  s.bias = l.bias() != nullptr;
  if (lora && is_target(*lora, l.name())) s.rank = lora->rank;
  return s;
}

// The projections of the first block stand for all.
PassShape pass_shape(models::Decoder& decoder, const MemoryQuestion& q) {
  PassShape p;
  p.model = q.model;
  p.trained = !q.lora;
  p.activate_again = !q.model.gate && !q.lora;
  p.adapter_noise = q.lora && q.lora->dropout > 0;
  p.scales_rows = q.lora && q.lora->dora;
  p.joined = !p.adapter_noise && !p.scales_rows && q.quantized.empty();
  p.element = q.bf16 ? 2 : 4;
  p.checkpointed = q.checkpointed;
  const auto all = decoder.linears();
  const std::size_t per_block =
      all.size() / static_cast<std::size_t>(q.model.layers);
  const std::size_t inputs = q.model.gpt2_layout ? 1 : 3;
  std::vector<LinearShape> block;
  for (std::size_t i = 0; i < per_block; ++i) {
    block.push_back(shape_of(*all[i], q.lora));
  }
  const auto at = [&](std::size_t i) {
    return block.begin() + static_cast<std::ptrdiff_t>(i);
  };
  p.attention_in.assign(at(0), at(inputs));
  p.attention_out = block[inputs];
  p.mlp_in.assign(at(inputs + 1), at(per_block - 1));
  p.mlp_out = block.back();
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
    const std::vector<Matrix>& all
) {
  ops::HeadLossTask t;
  t.tokens = std::min(q.rows * longest(q), q.step_tokens);
  t.vocabulary = q.model.vocab, t.dim = q.model.dim;
  t.type = q.bf16 ? GemmScalar::bf16 : GemmScalar::f32;
  t.terms.soft_cap = q.model.final_softcap;
  t.terms.label_smoothing = q.label_smoothing;
  t.dh = &t;
  t.packed_later = std::ranges::none_of(all, [](const Matrix& m) {
    return m.plain && m.format != nullptr;
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
    const std::vector<Matrix>& all
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
  for (const Matrix& m : all) {
    // The loss reads a head by its rows.
    if (m.format == nullptr || m.plain) continue;
    const auto layout = m.layout();
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
  models::Decoder decoder(q.model);
  const GemmFamily& family =
      ops::gemm_family(*q.table, q.bf16 ? GemmScalar::bf16 : GemmScalar::f32);
  const auto all = matrices_of(decoder, q.lora, q.quantized);
  Parts parts;
  MemoryTable& t = parts.table;
  const std::size_t element = q.bf16 ? 2 : 4;
  for (const Matrix& m : all) {
    const std::size_t n = m.elements();
    if (m.trained) {
      t.weights += leaf(4 * n);
      if (m.k > 1) t.gradients += leaf(4 * n);
      t.optimizer += state_bytes(q.optim, m);
    } else {
      t.weights += frozen_bytes(m, element);
    }
    const bool kept = q.packed_all || !m.trained || m.plain;
    if (m.matrix && m.format == nullptr && kept) {
      t.packed += packed_bytes(family, m);
    }
    // The model it started from: rows of the tables, one order of the rest.
    if (q.start_model && !q.lora) {
      if (m.plain) t.weights += leaf(element * n);
      if (m.matrix)
        t.packed += AlignedBuffer::taken(family.packed_bytes(m.n, m.k));
    }
  }
  t.optimizer += muon_workspace(q.optim, all);
  const PassShape shape = pass_shape(decoder, q);
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
  models::Decoder decoder(model);
  ParameterCount count;
  for (const Matrix& m : matrices_of(decoder, lora, {})) {
    count.all += m.elements();
    if (m.trained) count.trained += m.elements();
    if (m.plain && !m.matrix) count.gathered += m.elements();
  }
  return count;
}

}  // namespace hearth::train
