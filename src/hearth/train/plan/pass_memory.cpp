#include "hearth/train/plan/pass_memory.h"

#include <algorithm>
#include <deque>
#include <iterator>

#include <fmt/format.h>

#include "hearth/models/write_config.h"
#include "hearth/train/loop/session_step.h"
#include "hearth/train/objectives/language_model.h"
#include "hearth/train/plan/described_model.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

bool same_pass(const MemoryQuestion& a, const MemoryQuestion& b) {
  return a.model == b.model && a.quantized == b.quantized && a.bf16 == b.bf16 &&
         a.lora == b.lora && a.objective.key == b.objective.key &&
         a.checkpointed == b.checkpointed && a.packed_all == b.packed_all &&
         a.table == b.table && a.threads == b.threads;
}

Session planned_session(const MemoryQuestion& q) {
  Session s;
  s.planned = true;
  if (q.objective.recipe) s.recipe = *q.objective.recipe;
  if (q.lora && !s.recipe.lora) {
    static_cast<nn::LoraConfig&>(s.recipe.lora.emplace()) = *q.lora;
  }
  s.model = described_model(q);
  s.compute = compute_type(q);
  s.base = q.objective.base;
  s.model_config = s.base ? s.base->config() : models::config_json(q.model);
  return s;
}

// The kernels and the threads that the run will have.
class PlannedExecution {
 public:
  explicit PlannedExecution(const MemoryQuestion& q)
      : pool_(
            shared_pool().size() == q.threads
                ? nullptr
                : std::make_unique<ThreadPool>(q.threads)
        ),
        scope_(*q.table, pool_.get()) {}

 private:
  std::unique_ptr<ThreadPool> pool_;
  ops::ScopedExecution scope_;
  mx::StreamContext on_cpu_{mx::Device{mx::Device::cpu}};
};

// Rows of one document each.
data::Batch plain_rows(std::uint32_t rows, std::uint32_t length) {
  data::Batch b;
  b.rows = rows, b.length = length;
  const std::size_t tokens = std::size_t{rows} * length;
  b.ids.assign(tokens, 0), b.targets.assign(tokens, 0);
  b.segments.assign(tokens, 1), b.positions.assign(tokens, 0);
  b.weights.assign(tokens, 1.0f);
  b.tokens = b.trained = tokens;
  for (std::uint32_t row = 0; row < rows; ++row) {
    b.samples.push_back({.row = row, .length = length, .document = row});
  }
  return b;
}

void add_sizes(const MicroBatch& batch, std::vector<std::size_t>& sizes) {
  // Segments, as large as ids, are there where rows are not one document each.
  const mx::array* const all[] = {
      &batch.ids, &batch.targets, &batch.positions, &batch.weights, &batch.ids
  };
  for (const mx::array* a : all) sizes.push_back(a->nbytes());
  if (batch.noise) sizes.push_back(batch.noise->nbytes());
  for (const auto& a : batch.extra) sizes.push_back(a.nbytes());
}

}  // namespace

PassMemory::PassMemory(MemoryQuestion question)
    : question_(std::move(question)), session_(planned_session(question_)) {
  const PlannedExecution execution(question_);
  try {
    if (question_.objective.recipe)
      objective_ = session_.recipe.objective().make(session_);
    else
      take_language_model("");
  } catch (const std::exception& e) {
    take_language_model(e.what());
  }
  // The file is let go of: passes are remembered for long.
  session_.base.reset();
  question_.objective.base.reset();
}

void PassMemory::take_language_model(const std::string& why) {
  objective_ = std::make_unique<LanguageModel>();
  if (why.empty()) return;
  remark_ = fmt::format(
      "passes are planned as a language model's: {} could not be planned ({})",
      session_.recipe.train.objective, why
  );
}

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

MicroBatch PassMemory::described_batch(
    const PlannedPass& pass,
    std::int64_t rows
) const {
  const mx::Shape shape{static_cast<int>(rows), static_cast<int>(pass.length)};
  const auto ints = [&] { return ops::described_leaf(shape, mx::int32); };
  MicroBatch batch;
  batch.rows = shape[0], batch.length = shape[1];
  batch.ids = ints(), batch.targets = ints(), batch.positions = ints();
  batch.weights = ops::described_leaf(shape, mx::float32);
  if (pass.gradients && noise_of(session_.recipe, *objective_)) {
    batch.noise = ops::described_leaf(shape, mx::uint64);
  }
  const auto count = static_cast<std::uint32_t>(rows);
  objective_->attach(
      plain_rows(count, static_cast<std::uint32_t>(pass.length)), 0, count,
      batch
  );
  return batch;
}

PassMemory::Found PassMemory::found(const PlannedPass& pass) const {
  const PlannedExecution execution(question_);
  const models::Decoder& model = *session_.model;
  Found found;
  std::vector<MicroBatch> batches;
  for (const auto rows : pass.rows) {
    batches.push_back(described_batch(pass, rows));
    add_sizes(batches.back(), found.inputs);
  }
  ops::DryRun run;
  if (pass.gradients) {
    for (nn::Weight* w : model.parameters().trainable()) {
      if (w->home) w->home->clear();
    }
    auto graph = gradient_graph(model, *objective_, batches, session_.compute);
    auto all = std::move(graph.outputs);
    all.insert(
        all.end(), std::make_move_iterator(graph.gradients.begin()),
        std::make_move_iterator(graph.gradients.end())
    );
    graph.gradients.clear();
    run.eval(std::move(all));
  } else {
    run.eval(loss_graph(model, *objective_, batches.front(), session_.compute)
                 .outputs);
  }
  found.events = run.events();
  found.needs = {run.scratch(), run.nodes()};
  return found;
}

// An objective may do what cannot be planned, such as to look at a number.
PassMemory::Found PassMemory::found_by_any(const PlannedPass& pass) {
  try {
    return found(pass);
  } catch (const std::exception& e) {
    if (!question_.objective.recipe || !remark_.empty()) throw;
    take_language_model(e.what());
    seen_.clear();
    return found(pass);
  }
}

PassNeeds PassMemory::walk(BufferPool& pool, const PlannedPass& pass) {
  const std::lock_guard lock(mutex_);
  auto at = seen_.find(pass);
  if (at == seen_.end()) at = seen_.emplace(pass, found_by_any(pass)).first;
  std::vector<BufferPool::Id> inputs, ids;
  for (const auto bytes : at->second.inputs) inputs.push_back(pool.take(bytes));
  for (const ops::MemoryEvent& e : at->second.events) {
    if (e.bytes > 0)
      ids.push_back(pool.take(e.bytes));
    else
      pool.drop(ids.at(static_cast<std::size_t>(e.buffer)));
  }
  for (const auto id : inputs) pool.drop(id);
  return at->second.needs;
}

std::string PassMemory::remark() {
  const std::lock_guard lock(mutex_);
  return remark_;
}

}  // namespace hearth::train
