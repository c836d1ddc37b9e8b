#pragma once
// What a run's weights take: the records of the blueprint and of its adapters,
// each in the forms that the weight plan gives it, and the optimiser's state.
#include <cstddef>
#include <vector>

#include "hearth/kernels/gemm.h"
#include "hearth/models/blueprint.h"
#include "hearth/models/weight_plan.h"
#include "hearth/train/plan/memory_model.h"

namespace hearth::train {

struct PlannedWeight {
  nn::WeightSpec spec;  // trainable: this run moves it
  models::WeightForms forms;

  long rows() const { return spec.shape.at(0); }
  long columns() const { return spec.shape.size() > 1 ? spec.shape[1] : 1; }
  // The embedding or the head, whose rows are kept.
  bool is_table() const;
  kernels::PackedLayout layout() const;  // of a quantised one
};

// Those of the model, then of adapters where there are any. packed_all: as
// models::PackedCopies.
std::vector<PlannedWeight> planned_weights(
    const models::Blueprint& blueprint,
    const std::optional<nn::LoraConfig>& lora,
    const QuantizedMatrices& quantized,
    bool bf16,
    bool packed_all = true
);

// Of an array that the allocator gives a block of its own.
std::size_t leaf_bytes(std::size_t bytes);

// Rows and quantised codes; packed copies are apart.
std::size_t held_bytes(const PlannedWeight& w);
std::size_t packed_bytes(const kernels::GemmFamily& f, const PlannedWeight& w);
// Of the optimiser for that weight.
std::size_t state_bytes(const optim::OptimConfig& c, const PlannedWeight& w);
// What its steps in place work in: the allocator keeps it by size.
std::size_t update_workspace(
    const optim::OptimConfig& c,
    const std::vector<PlannedWeight>& all
);

}  // namespace hearth::train
