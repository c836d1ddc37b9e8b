#pragma once
// What a run starts from, for objectives that read it all the time. In a
// session that is planned it has shapes and no numbers, and nothing is loaded.
#include <memory>

#include "hearth/nn/lora.h"
#include "hearth/train/loop/session.h"

namespace hearth::train {

// The whole model, as it is for inference.
std::shared_ptr<const models::Decoder> start_decoder(const Session& session);

// Of adapters that were there before (model.adapter), to be read in place of
// those that are trained.
std::shared_ptr<const nn::LoraSet> start_adapters(const Session& session);

// How such a model holds matrices that its file has quantised.
std::map<std::string, kernels::QuantFormat> start_formats(
    const io::ModelSource& source,
    const models::DecoderConfig& config,
    mx::Dtype compute
);

}  // namespace hearth::train
