#pragma once
// The ways to cut a step into micro-batches, and what each takes in memory.
#include "hearth/train/plan/planner.h"

namespace hearth::train {

// What is given up for memory beside rows.
struct CutPolicy {
  std::string checkpointing, packed;
};

struct Cut {
  std::int64_t rows;
  CutPolicy policy;
  bool fits;
};

class Cutting {
 public:
  Cutting(const Recipe& r, const PlannedModel& m, const PlanMachine& machine);

  const BatchChoice& batch() const { return batch_; }

  // The first that fits: usual rows, fewer, no packed copies, blocks again, one
  // row. Without one, the smallest.
  Cut choose() const;
  Cut at(std::int64_t rows, const CutPolicy& policy) const;
  MemoryTable memory(const Cut& cut) const;
  // PassMemory::remark() of those passes.
  std::string remark(const Cut& cut) const;
  // Where the batch policy takes the rows: doubled while a step takes less than
  // half of the budget, as long as the whole process stays within it.
  std::int64_t settle(const Cut& cut) const;

 private:
  const Recipe& recipe_;
  const PlannedModel& model_;
  const PlanMachine& machine_;
  BatchChoice batch_;
  PlannedObjective objective_;

  std::vector<CutPolicy> policies() const;
  MemoryQuestion question(std::int64_t rows, const CutPolicy& policy) const;
};

}  // namespace hearth::train
