#pragma once
// The gradients of a whole batch, taken a few rows at a time. What is summed is
// sums, divided by nobody here, so the result is the same however rows are
// cut, but for the order of additions. Running out of memory is an event: rows
// are halved and the batch is run again.
#include <functional>

#include "hearth/train/step/gradient.h"

namespace hearth::train {

struct AccumulateOptions {
  mx::Dtype compute = mx::bfloat16;
  int eval_interval = 1;           // micro-batches evaluated together
  double loss_scale = 1;           // gradients are so much larger
  std::optional<RandomKey> noise;  // of this step
  // Told when rows had to be halved: from, to, why.
  std::function<void(std::uint32_t, std::uint32_t, const std::string&)> shrunk;
};

// How many rows go through the model at once where the objective wants some
// kept together (Objective::row_group): as many whole groups as were asked for
// and the batch has, one at least.
std::uint32_t whole_groups(
    std::uint32_t rows,
    std::uint32_t together,
    std::uint32_t batch_rows
);
// What is tried after memory ran out for `rows`, which are more than one group:
// half of the groups, rounded up.
std::uint32_t fewer_rows(std::uint32_t rows, std::uint32_t together);

// rows is how many to take at a time and is lowered when memory runs out. On a
// CPU the gradients of matrices are summed where they stay until the next call
// (nn::Weight::home). Throws OutOfMemory when not even one row fits.
Gradients accumulate(
    const models::Decoder& model,
    const Objective& objective,
    const data::Batch& batch,
    std::uint32_t& rows,
    const AccumulateOptions& options
);

}  // namespace hearth::train
