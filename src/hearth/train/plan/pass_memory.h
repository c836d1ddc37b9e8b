#pragma once
// The buffers of one training pass in the order its ops take and drop them:
// the graph that a step would evaluate, made over a model of shapes alone and
// gone through without memory (ops/dry_run.h). Gradients of matrices have a
// home of their own and are not among them.
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "hearth/models/decoder.h"
#include "hearth/ops/dry_run.h"
#include "hearth/train/plan/buffer_pool.h"
#include "hearth/train/plan/memory_model.h"
#include "hearth/train/plan/weight_memory.h"

namespace hearth::train {

class PassMemory {
 public:
  explicit PassMemory(MemoryQuestion question);
  // The one for questions whose passes are the same but for their rows. What
  // it has found is remembered: a planner asks for the same passes many times.
  static std::shared_ptr<PassMemory> of(const MemoryQuestion& question);

  // Takes and drops what a pass over so many rows does; without `gradients`,
  // as a validation.
  void walk(
      BufferPool& pool,
      std::int64_t rows,
      std::int64_t length,
      bool gradients
  );

 private:
  MemoryQuestion question_;
  models::Decoder model_;
  std::mutex mutex_;
  // By rows, length, and whether gradients are made.
  std::map<
      std::tuple<std::int64_t, std::int64_t, bool>,
      std::vector<ops::MemoryEvent>>
      seen_;

  std::vector<ops::MemoryEvent> events_of(
      std::int64_t rows,
      std::int64_t length,
      bool gradients
  ) const;
};

}  // namespace hearth::train
