#pragma once
// The buffers of the passes of a step in the order their ops take and drop
// them: the graphs that the loop would evaluate, of the run's own objective,
// made over a model of shapes alone and gone through without memory
// (ops/dry_run.h). Gradients of matrices have a home of their own and are not
// among them.
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/ops/dry_run.h"
#include "hearth/train/loop/session.h"
#include "hearth/train/plan/buffer_pool.h"
#include "hearth/train/plan/memory_model.h"

namespace hearth::train {

// What the loop evaluates at once.
struct PlannedPass {
  std::vector<std::int64_t> rows;  // of each micro-batch
  std::int64_t length = 0;
  bool gradients = true;  // else the loss alone, as a validation

  auto operator<=>(const PlannedPass&) const = default;
};

// What it takes beside arrays.
struct PassNeeds {
  std::size_t scratch = 0;  // bytes; the most that an op asks for
  std::size_t nodes = 0;    // of its graph
};

class PassMemory {
 public:
  explicit PassMemory(MemoryQuestion question);
  // The one for questions whose passes are the same but for their rows. What
  // it has found is remembered: a planner asks for the same passes many times.
  static std::shared_ptr<PassMemory> of(const MemoryQuestion& question);

  // Takes and drops the arrays of the pass.
  PassNeeds walk(BufferPool& pool, const PlannedPass& pass);

  // Why passes are those of a language model and not of the objective; empty
  // where they are its own.
  std::string remark();

 private:
  struct Found {
    std::vector<std::size_t>
        inputs;  // bytes of each array of the micro-batches
    std::vector<ops::MemoryEvent> events;
    PassNeeds needs;
  };

  MemoryQuestion question_;
  Session session_;
  std::unique_ptr<Objective> objective_;
  std::string remark_;
  std::mutex mutex_;
  std::map<PlannedPass, Found> seen_;

  void take_language_model(const std::string& why);
  MicroBatch described_batch(const PlannedPass& pass, std::int64_t rows) const;
  Found found(const PlannedPass& pass) const;
  Found found_by_any(const PlannedPass& pass);
};

}  // namespace hearth::train
