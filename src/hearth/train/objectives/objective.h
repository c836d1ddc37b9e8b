#pragma once
// What a run minimises: a sum over tokens, and what to divide it by. The loop
// knows only this class; how a recipe names an objective and what it needs is
// its kind's (objective_kind.h). Pre-training, fine-tuning, preference pairs
// and what areas above this one add differ here and nowhere in the loop.
#include <map>
#include <string>
#include <vector>

#include "hearth/models/decoder.h"
#include "hearth/train/step/micro_batch.h"

namespace hearth::train {

struct ObjectiveValue {
  mx::array loss_sum;    // float32 scalar, differentiated
  mx::array weight_sum;  // float32 scalar: what the sum is a sum over
  // Other float32 sums over the same, by the names of their means: "accuracy"
  // is written down as valid_accuracy. They are asked for in a validation and
  // not differentiated.
  std::map<std::string, mx::array> metric_sums = {};
};

class Objective {
 public:
  virtual ~Objective() = default;
  // Builds the graph of a pass. The planner goes through that graph where no
  // number is looked at meanwhile; ops::evaluate (ops/dry_run.h) may be called.
  virtual ObjectiveValue operator()(
      const models::Decoder& model,
      const MicroBatch& batch,
      const nn::Pass& pass
  ) const = 0;
  // Rows that must stay together when a batch is cut; its kind's row_group.
  virtual std::uint32_t row_group() const { return 1; }
  // Whether a training pass draws random numbers of its own (MicroBatch::noise
  // has their keys). What the model drops is not meant.
  virtual bool draws_noise() const { return false; }
  // Adds what it needs beside the tokens of rows [begin, end) to
  // MicroBatch::extra, such as what a teacher made of them; their documents are
  // batch.samples. Called for every micro-batch, before its pass, and by the
  // planner with rows of zeros.
  virtual void attach(
      const data::Batch& /*batch*/,
      std::uint32_t /*begin*/,
      std::uint32_t /*end*/,
      MicroBatch& /*rows*/
  ) const {}
};

// Rows [begin, end) as the objective reads them.
MicroBatch make_micro_batch(
    const Objective& objective,
    const data::Batch& batch,
    std::uint32_t begin,
    std::uint32_t end,
    std::optional<RandomKey> noise = {}
);

}  // namespace hearth::train
