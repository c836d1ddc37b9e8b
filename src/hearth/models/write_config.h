#pragma once
// A model that new_model() made, as a config.json that transformers reads. A
// partial gate has no place in a stock architecture: such a model is written
// as one of our own, which other tools refuse by name.
#include "hearth/base/json.h"
#include "hearth/models/decoder_config.h"

namespace hearth::models {

Json config_json(const DecoderConfig& config);

// What a family's row of the table names (family.h): its keys but for a gate's.
Json write_common(const DecoderConfig& config);
// Of families whose config says which projections have biases.
Json write_with_biases(const DecoderConfig& config);
Json write_gpt2(const DecoderConfig& config);

}  // namespace hearth::models
