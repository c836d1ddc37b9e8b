#pragma once
// Loss and gradients of one micro-batch, evaluated.
#include <span>
#include <vector>

#include "hearth/nn/parameter_set.h"
#include "hearth/train/objectives/objective.h"
#include "hearth/train/objectives/objective_kind.h"

namespace hearth::train {

struct Gradients {
  double loss_sum = 0, weight_sum = 0;
  NamedValues metric_sums;  // of loss_of, those of the objective
  // One for each trainable parameter, in their order; float32.
  std::vector<mx::array> arrays;
};

// What one run through the model knows of a micro-batch.
nn::Pass pass_of(const MicroBatch& batch, mx::Dtype compute, bool training);

// A pass that is not evaluated yet.
struct PassGraph {
  std::vector<mx::array> outputs;    // of every micro-batch loss and weight sum
  std::vector<mx::array> gradients;  // as in Gradients; none of the loss alone
};
PassGraph gradient_graph(
    const models::Decoder& model,
    const Objective& objective,
    std::span<const MicroBatch> batches,
    mx::Dtype compute,
    double loss_scale = 1
);

// The loss alone: loss sum, weight sum, then the objective's metrics.
struct LossGraph {
  std::vector<mx::array> outputs;
  std::vector<std::string> metrics;
};
LossGraph loss_graph(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
);

// Throws OutOfMemory, with the model as it was, when the budget does not hold
// the pass. Several micro-batches are built as one graph and evaluated
// together, each when the gradients of the one before are there, so that they
// take the memory of one; their gradients are summed. Those that have a home
// are added to what is there; when memory runs out, it holds part of them and
// must be cleared. The loss is multiplied by loss_scale before it is
// differentiated: gradients are that much larger, loss_sum is not.
Gradients gradients_of(
    const models::Decoder& model,
    const Objective& objective,
    std::span<const MicroBatch> batches,
    mx::Dtype compute,
    double loss_scale = 1
);
Gradients gradients_of(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
);

// The loss alone, without gradients.
Gradients loss_of(
    const models::Decoder& model,
    const Objective& objective,
    const MicroBatch& batch,
    mx::Dtype compute
);

}  // namespace hearth::train
