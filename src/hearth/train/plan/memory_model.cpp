#include "hearth/train/plan/memory_model.h"

#include <algorithm>
#include <map>

#include "hearth/base/aligned_buffer.h"
#include "hearth/ops/gemm.h"
#include "hearth/train/plan/described_model.h"
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
// An array of a graph while MLX goes through it: 530 bytes of the array, its
// primitive and their lists, the rest MLX's own notes (9,098 arrays: 7.4 MB).
constexpr std::size_t kNodeBytes = 808;
// Pages of a quantised base's file: 5.5 MiB more of them than without one were
// resident in a run (docs/log/train.md, "Memory is planned").
constexpr std::size_t kQuantizedFileBytes = std::size_t{5} << 20;

std::int64_t longest(const MemoryQuestion& q) {
  return *std::ranges::max_element(q.lengths);
}

// Of a whole step and of a micro-batch of rows that long.
std::int64_t all_rows(const MemoryQuestion& q, std::int64_t length) {
  const std::int64_t all = q.step_tokens / length;
  return std::max(q.row_group, all - all % q.row_group);
}
std::int64_t rows_at(const MemoryQuestion& q, std::int64_t length) {
  const std::int64_t equal = q.rows * longest(q) / length;
  return std::clamp<std::int64_t>(
      equal - equal % q.row_group, q.row_group, all_rows(q, length)
  );
}

// A step: whole micro-batches and the rest of the rows, as many together as are
// evaluated so, then a validation.
std::vector<PlannedPass> passes_of(
    const MemoryQuestion& q,
    std::int64_t length
) {
  const std::int64_t all = all_rows(q, length), each = rows_at(q, length);
  const auto together = static_cast<std::size_t>(q.eval_interval);
  std::vector<PlannedPass> passes;
  PlannedPass next{.length = length};
  for (std::int64_t begin = 0; begin < all; begin += each) {
    next.rows.push_back(std::min(each, all - begin));
    if (next.rows.size() < together && begin + each < all) continue;
    // Of equal ones, those after the second take nothing new.
    const std::size_t n = passes.size();
    if (n < 2 || passes[n - 1] != next || passes[n - 2] != next) {
      passes.push_back(next);
    }
    next.rows.clear();
  }
  passes.push_back({{each}, length, false});
  return passes;
}

struct RunMemory {
  std::size_t resident = 0, live_peak = 0;  // of buffers
  std::size_t scratch = 0, graph = 0;
};

// Of the lengths whose micro-batches have as many tokens, the arrays are of the
// same sizes and serve all; before the others they are given back, so that the
// run takes what the largest takes.
RunMemory walk_run(const MemoryQuestion& q) {
  const auto memory = PassMemory::of(q);
  std::map<std::int64_t, BufferPool> pools;  // by tokens
  RunMemory run;
  for (const auto length : q.lengths) {
    BufferPool& pool = pools[rows_at(q, length) * length];
    for (const PlannedPass& pass : passes_of(q, length)) {
      const PassNeeds needs = memory->walk(pool, pass);
      run.scratch = std::max(run.scratch, needs.scratch);
      run.graph = std::max(run.graph, needs.nodes * kNodeBytes);
    }
    if (pool.resident() < run.resident) continue;
    run.resident = pool.resident(), run.live_peak = pool.live_peak();
  }
  run.scratch = AlignedBuffer::taken(run.scratch);
  return run;
}

void add_passes(const MemoryQuestion& q, MemoryTable& table) {
  const RunMemory run = walk_run(q);
  table.activations = run.resident, table.scratch = run.scratch;
  table.process += run.graph;
}

// All but what passes take.
MemoryTable predict_fixed(const MemoryQuestion& q) {
  const models::Blueprint blueprint(q.model);
  const GemmFamily& family =
      ops::gemm_family(*q.table, q.bf16 ? GemmScalar::bf16 : GemmScalar::f32);
  const auto all =
      planned_weights(blueprint, q.lora, q.quantized, q.bf16, q.packed_all);
  MemoryTable t;
  for (const PlannedWeight& w : all) {
    t.weights += held_bytes(w);
    if (w.spec.trainable) {
      if (w.columns() > 1) t.gradients += leaf_bytes(4 * w.spec.elements());
      t.optimizer += state_bytes(q.optim, w);
    }
    t.packed += packed_bytes(family, w);
  }
  if (q.start_model && !q.lora) {
    for (const PlannedWeight& w :
         start_weights(q.model, q.start_quantized, compute_type(q))) {
      t.weights += held_bytes(w);
      t.packed += packed_bytes(family, w);
    }
  }
  t.optimizer += update_workspace(q.optim, all);
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
  add_passes(q, t);
  return t;
}

bool fits(const MemoryQuestion& q, std::size_t budget) {
  MemoryTable t = predict_fixed(q);
  if (t.total() > budget) return false;
  add_passes(q, t);
  return t.total() <= budget;
}

std::size_t predict_charged(const MemoryQuestion& q) {
  const MemoryTable t = predict_fixed(q);
  const RunMemory run = walk_run(q);
  return t.weights + t.packed + t.gradients + t.optimizer + run.scratch +
         run.live_peak;
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
