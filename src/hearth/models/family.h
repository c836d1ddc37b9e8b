#pragma once
// The model families: each translates its config.json. One small file a family.
#include <span>
#include <string>
#include <string_view>

#include "hearth/models/config_keys.h"
#include "hearth/models/decoder_config.h"

namespace hearth::models {

struct Family {
  std::string_view model_type;    // config.json's
  std::string_view architecture;  // of the causal language model
  DecoderConfig (*parse)(ConfigKeys& keys);
  // The traits of a new model of that family, which `model.arch` may ask for;
  // null: it is only loaded.
  void (*start)(DecoderConfig& config) = nullptr;
  // The config.json of a new model of that family (write_config.h); null:
  // none is written.
  Json (*write)(const DecoderConfig& config) = nullptr;
};

std::span<const Family> families();
// Null for a model_type that is not known.
const Family* family_named(std::string_view model_type);

// The config of a model folder; file names it in errors. An unknown
// architecture is an error that lists the known.
DecoderConfig parse_config(const Json& config, const std::string& file);

// Which families build on.
DecoderConfig parse_llama(ConfigKeys& keys);
// What the Llama-like families share: sizes, norm, activation, tie.
DecoderConfig parse_common(ConfigKeys& keys);
ops::Activation parse_activation(
    ConfigKeys& keys,
    std::string_view key,
    const char* fallback
);
// rope_theta with rope_scaling, or rope_parameters, which replaced both.
ops::RopeConfig parse_rope(ConfigKeys& keys, const DecoderConfig& config);
// Reads one rope_parameters object.
ops::RopeConfig parse_rope_object(
    ConfigKeys& keys,
    const Json& object,
    double theta,
    const DecoderConfig& config
);
// From layer_types, or from `is_local(layer)` where that is absent.
std::vector<int> parse_windows(
    ConfigKeys& keys,
    int layers,
    int window,
    bool (*is_local)(int layer, int pattern),
    int pattern
);

}  // namespace hearth::models
