#pragma once
// Adapters on a decoder: which layers get one, and PEFT's files in.
#include <string>

#include "hearth/models/blueprint.h"
#include "hearth/models/load.h"
#include "hearth/nn/lora.h"

namespace hearth::models {

// Throws UsageError unless each of config.targets names a projection.
void check_targets(const Blueprint& blueprint, const nn::LoraConfig& config);

// The projections that config.targets names, in the model's order.
std::vector<const nn::WeightSpec*> lora_targets(
    const Blueprint& blueprint,
    const nn::LoraConfig& config
);

// Gives every projection that config.targets names an adapter whose parameters
// are trainable and zero. Throws UsageError when a target names no layer.
void attach_adapters(
    Decoder& decoder,
    const io::ModelSource& base,
    const nn::LoraConfig& config
);

// Fills adapters that are attached from a PEFT folder, to train on from there.
// Throws FormatError when it is not an adapter of the same layers and form.
void continue_adapter(
    Decoder& decoder,
    const std::string& folder,
    mx::Dtype compute
);

// Reads a PEFT folder onto a loaded model, for inference. Throws FormatError
// when it does not fit.
void load_adapter(LoadedModel& model, const std::string& folder);

// Reads a PEFT folder beside a loaded model, which stays as it is: see
// nn::Pass::lora. Throws FormatError when it does not fit.
std::shared_ptr<const nn::LoraSet> read_adapter(
    const LoadedModel& model,
    const std::string& folder
);
// The same over a decoder whose weights came from `base`.
std::shared_ptr<const nn::LoraSet> read_adapter(
    Decoder& decoder,
    const io::ModelSource& base,
    mx::Dtype compute,
    const std::string& folder
);

// Puts every adapter into the weights below it, which become dense: steps cost
// what the plain model's do. The result is rounded once, from float32.
void merge_adapters(LoadedModel& model);
// Takes them out again: the base's weights are read from its file anew, so
// that they are the very same ones, quantised where they were.
void unmerge_adapters(LoadedModel& model);

// Writes the adapters of a model as a PEFT folder over the base of that name.
// Throws UsageError when it has none, or the folder is there without force.
void save_adapter(
    Decoder& decoder,
    const std::string& base,
    const std::string& folder,
    bool force
);

}  // namespace hearth::models
