#include "hearth/train/objectives/objective.h"

namespace hearth::train {

MicroBatch make_micro_batch(
    const Objective& objective,
    const data::Batch& batch,
    std::uint32_t begin,
    std::uint32_t end,
    std::optional<RandomKey> noise
) {
  MicroBatch rows = make_micro_batch(batch, begin, end, noise);
  objective.attach(batch, begin, end, rows);
  return rows;
}

}  // namespace hearth::train
