#pragma once
// A model that new_model() made, as a config.json that transformers reads. A
// partial gate has no place in a stock architecture: such a model is written
// as one of our own, which other tools refuse by name.
#include "hearth/base/json.h"
#include "hearth/models/decoder_config.h"

namespace hearth::models {

Json config_json(const DecoderConfig& config);

}  // namespace hearth::models
