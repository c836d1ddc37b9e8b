#pragma once
// Models of shapes alone, whose weights have the forms that a run holds them in
// and no numbers: for graphs that are planned and never computed
// (ops/dry_run.h).
#include <memory>
#include <vector>

#include "hearth/models/decoder.h"
#include "hearth/nn/lora.h"
#include "hearth/train/plan/memory_model.h"
#include "hearth/train/plan/weight_memory.h"

namespace hearth::train {
namespace mx = mlx::core;

// What products are computed in.
mx::Dtype compute_type(const MemoryQuestion& question);

// The model that is trained.
std::unique_ptr<models::Decoder> described_model(
    const MemoryQuestion& question
);

// The model it starts from, as it is held beside the one that is trained.
std::vector<PlannedWeight> start_weights(
    const models::DecoderConfig& config,
    const QuantizedMatrices& quantized,
    mx::Dtype compute
);
std::unique_ptr<models::Decoder> described_start(
    const models::DecoderConfig& config,
    const QuantizedMatrices& quantized,
    mx::Dtype compute
);

// Adapters in the form of the model's own, which take their place in a pass.
std::unique_ptr<nn::LoraSet> described_adapters(
    models::Decoder& model,
    mx::Dtype compute
);

}  // namespace hearth::train
