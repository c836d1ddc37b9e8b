#include <algorithm>

#include "hearth/ops/execution.h"
#include "hearth/train/plan_cutting_impl.h"
#include "hearth/train/session.h"

namespace hearth::train {
namespace {

// Products are at their best from a few thousand tokens on, and memory grows
// with every one.
constexpr std::int64_t kUsualMicroTokens = 8192;
// Below so many tokens computing blocks again costs less than small products.
constexpr std::int64_t kLeastMicroTokens = 1024;

}  // namespace

BatchChoice batch_choice(const Recipe& recipe) {
  BatchChoice b;
  const auto length = recipe.longest();
  b.all = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(recipe.step_tokens()) / length
  );
  const auto& t = recipe.train;
  std::int64_t rows = t.micro_batch_size;
  if (rows == 0 && t.gradient_accumulation_steps > 0) {
    rows = (b.all + t.gradient_accumulation_steps - 1) /
           t.gradient_accumulation_steps;
  }
  b.pinned = rows > 0 || !t.dynamic_batch;
  if (rows == 0) {
    rows = std::clamp<std::int64_t>(kUsualMicroTokens / length, 1, b.all);
  }
  b.rows = std::min(rows, b.all);
  return b;
}

MemoryQuestion Cutting::question(
    std::int64_t rows,
    const std::string& checkpointing
) const {
  const Recipe& r = recipe_;
  MemoryQuestion q;
  q.model = model_.config;
  q.quantized_bytes = r.lora ? model_.quantized_bytes : 0;
  q.bf16 = r.train.precision != "fp32";
  q.lora = r.lora;
  q.optim = r.optim;
  q.preference = r.train.objective == "dpo";
  q.label_smoothing = static_cast<float>(r.train.label_smoothing);
  q.step_tokens = static_cast<std::int64_t>(r.step_tokens());
  q.lengths = r.train.seq_lengths;
  if (q.lengths.empty()) q.lengths = {r.data.length};
  q.rows = rows;
  q.together = static_cast<int>(r.train.eval_interval);
  q.checkpointed = checkpointed_layers(checkpointing, model_.config.layers);
  q.prefetch = r.data.prefetch;
  q.threads = machine_.threads;
  q.table = machine_.table != nullptr ? machine_.table
                                      : &ops::current_execution().kernels;
  return q;
}

Cut Cutting::choose() const {
  const std::string& asked = recipe_.train.checkpointing;
  const auto longest = recipe_.longest();
  std::vector<Cut> tried;
  const auto go = [&](const std::string& policy, std::int64_t least_tokens) {
    for (std::int64_t rows = batch_.rows;; rows = (rows + 1) / 2) {
      tried.push_back(at(rows, policy));
      const bool smaller =
          !batch_.pinned && rows > 1 && rows / 2 * longest >= least_tokens;
      if (tried.back().fits || !smaller) return tried.back().fits;
    }
  };
  if (asked != "auto") {
    go(asked, 1);
  } else if (!go("none", kLeastMicroTokens)) {
    go("all", 1);
  }
  return tried.back();
}

Cut Cutting::at(std::int64_t rows, const std::string& policy) const {
  Cut c{rows, policy, predict_memory(question(rows, policy)), true};
  c.fits = machine_.budget == 0 || c.memory.total() <= machine_.budget;
  return c;
}

std::int64_t Cutting::settle(const Cut& cut) const {
  std::int64_t rows = cut.rows;
  if (batch_.pinned || machine_.budget == 0) return rows;
  while (rows < batch_.all &&
         predict_charged(question(rows, cut.checkpointing)) <
             machine_.budget / 2) {
    const std::int64_t next = std::min(2 * rows, batch_.all);
    if (!at(next, cut.checkpointing).fits) break;
    rows = next;
  }
  return rows;
}

}  // namespace hearth::train
