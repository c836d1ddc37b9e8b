// How a batch is cut into micro-batches that fit.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/ops/execution.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/plan/pass_memory.h"
#include "hearth/train/plan/plan_cutting_impl.h"

namespace hearth::train {
namespace {

// Products are at their best from a few thousand tokens on, and memory grows
// with every one.
constexpr std::int64_t kUsualMicroTokens = 8192;
// Below so many tokens computing blocks again costs less than small products.
constexpr std::int64_t kLeastMicroTokens = 1024;

PlannedObjective planned_objective(const Recipe& r, const PlannedModel& m) {
  std::string key =
      fmt::format("{} {} {}", r.train.objective, r.model.from, r.model.adapter);
  for (const auto& [name, value] : r.train.objectives.values()) {
    key += fmt::format(" {}={}", name, value);
  }
  return {std::make_shared<const Recipe>(r), m.source, key};
}

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

Cutting::Cutting(
    const Recipe& r,
    const PlannedModel& m,
    const PlanMachine& machine
)
    : recipe_(r),
      model_(m),
      machine_(machine),
      batch_(batch_choice(r)),
      objective_(planned_objective(r, m)) {}

MemoryQuestion Cutting::question(
    std::int64_t rows,
    const CutPolicy& policy
) const {
  const Recipe& r = recipe_;
  MemoryQuestion q;
  q.model = model_.config;
  q.objective = objective_;
  if (r.lora) q.quantized = model_.quantized;
  q.bf16 = r.train.precision != "fp32";
  q.lora = r.lora;
  q.optim = r.optim;
  const ObjectiveNeeds& needs = r.objective().needs;
  q.start_model = needs.start_model;
  if (q.start_model) q.start_quantized = model_.start_quantized;
  q.step_tokens = static_cast<std::int64_t>(r.step_tokens());
  q.lengths = row_lengths(r);
  q.row_group = needs.row_group;
  q.rows = std::max(q.row_group, rows - rows % q.row_group);
  q.eval_interval = r.train.eval_interval;
  q.checkpointed =
      checkpointed_layers(policy.checkpointing, model_.config.layers);
  q.packed_all = policy.packed != "head";
  q.prefetch = r.data.prefetch;
  q.threads = machine_.threads;
  q.table = machine_.table != nullptr ? machine_.table
                                      : &ops::current_execution().kernels;
  return q;
}

// From the fastest to the smallest.
std::vector<CutPolicy> Cutting::policies() const {
  const auto& t = recipe_.train;
  const std::vector<std::string> blocks =
      t.checkpointing == "auto" ? std::vector<std::string>{"none", "all"}
                                : std::vector<std::string>{t.checkpointing};
  // Adapters are trained over matrices that are only packed.
  const bool choice = t.packed == "auto" && !recipe_.lora;
  const std::vector<std::string> packed =
      choice ? std::vector<std::string>{"all", "head"}
             : std::vector<std::string>{t.packed == "auto" ? "all" : t.packed};
  std::vector<CutPolicy> all;
  for (const auto& b : blocks) {
    for (const auto& p : packed) all.push_back({b, p});
  }
  return all;
}

Cut Cutting::choose() const {
  const auto longest = recipe_.longest();
  const auto ways = policies();
  Cut last{};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto least = i + 1 < ways.size() ? kLeastMicroTokens : 1;
    for (std::int64_t rows = batch_.rows;; rows = (rows + 1) / 2) {
      last = at(rows, ways[i]);
      if (last.fits) return last;
      if (batch_.pinned || rows == 1 || rows / 2 * longest < least) break;
    }
  }
  return last;
}

Cut Cutting::at(std::int64_t rows, const CutPolicy& policy) const {
  const bool free = machine_.budget == 0;
  return {rows, policy, free || fits(question(rows, policy), machine_.budget)};
}

MemoryTable Cutting::memory(const Cut& cut) const {
  return predict_memory(question(cut.rows, cut.policy));
}

std::string Cutting::remark(const Cut& cut) const {
  return PassMemory::of(question(cut.rows, cut.policy))->remark();
}

std::int64_t Cutting::settle(const Cut& cut) const {
  std::int64_t rows = cut.rows;
  if (batch_.pinned || machine_.budget == 0) return rows;
  while (rows < batch_.all &&
         predict_charged(question(rows, cut.policy)) < machine_.budget / 2) {
    const std::int64_t next = std::min(2 * rows, batch_.all);
    if (!at(next, cut.policy).fits) break;
    rows = next;
  }
  return rows;
}

}  // namespace hearth::train
