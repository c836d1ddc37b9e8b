// Rotary settings as two generations of config.json have them.
#include <array>

#include "hearth/base/error.h"
#include "hearth/models/family.h"

namespace hearth::models {
namespace {

double number_of(
    const ConfigKeys& keys,
    const Json& o,
    const char* name,
    double fallback
) {
  const auto at = o.find(name);
  if (at == o.end() || at->is_null()) return fallback;
  if (!at->is_number()) keys.refuse(name, "must be a number");
  return at->get<double>();
}

void check_names(const ConfigKeys& keys, const Json& o) {
  constexpr std::array<std::string_view, 15> kKnown{
      "rope_type",
      "type",
      "factor",
      "rope_theta",
      "low_freq_factor",
      "high_freq_factor",
      "beta_fast",
      "beta_slow",
      "attention_factor",
      "mscale",
      "mscale_all_dim",
      "original_max_position_embeddings",
      "partial_rotary_factor",
      "finetuned",
      "truncate"
  };
  for (const auto& [name, value] : o.items()) {
    if (std::ranges::find(kKnown, name) == kKnown.end() && !value.is_null()) {
      keys.refuse(name, "in the rotary settings is not understood");
    }
  }
}

// What a kind of scaling has no meaning without.
void check_needed(
    const ConfigKeys& keys,
    const Json& o,
    const std::string& kind
) {
  const auto need = [&](const char* name) {
    const auto at = o.find(name);
    if (at == o.end() || at->is_null()) {
      keys.refuse(name, "must be given for rotary scaling " + kind);
    }
  };
  if (kind != "default") need("factor");
  if (kind != "llama3") return;
  need("low_freq_factor");
  need("high_freq_factor");
  need("original_max_position_embeddings");
}

void check_frequencies(const ConfigKeys& keys, const ops::RopeConfig& r) {
  if (!(r.base > 1)) keys.refuse("rope_theta", "must be above 1");
  try {
    ops::rope_frequencies(r);
  } catch (const UsageError& e) {
    keys.refuse("rope_type", e.what());
  }
}

}  // namespace

ops::RopeConfig parse_rope_object(
    ConfigKeys& keys,
    const Json& o,
    double theta,
    const DecoderConfig& c
) {
  ops::RopeConfig r;
  r.dims = c.head_dim;
  r.base = theta;
  if (o.is_null()) {
    check_frequencies(keys, r);
    return r;
  }
  if (!o.is_object()) keys.refuse("rope_scaling", "must be an object");
  check_names(keys, o);
  const auto get = [&](const char* name, double fallback) {
    return number_of(keys, o, name, fallback);
  };
  r.base = get("rope_theta", theta);
  const double part = get("partial_rotary_factor", 1);
  r.dims = static_cast<int>(part * c.head_dim);
  std::string kind = "default";
  for (const char* name : {"type", "rope_type"}) {
    if (o.contains(name) && o[name].is_string()) {
      kind = o[name].get<std::string>();
    }
  }
  try {
    r.scaling = ops::rope_scaling_named(kind);
  } catch (const UsageError& e) {
    keys.refuse("rope_type", e.what());
  }
  check_needed(keys, o, kind);
  r.factor = get("factor", 1);
  r.original_length =
      static_cast<int>(get("original_max_position_embeddings", c.max_length));
  r.low_freq_factor = get("low_freq_factor", 1);
  r.high_freq_factor = get("high_freq_factor", 4);
  r.beta_fast = get("beta_fast", 32);
  r.beta_slow = get("beta_slow", 1);
  r.mscale = get("mscale", 0);
  r.mscale_all_dim = get("mscale_all_dim", 0);
  if (o.contains("truncate") && o["truncate"].is_boolean()) {
    r.truncate = o["truncate"].get<bool>();
  }
  if (o.contains("attention_factor") && o["attention_factor"].is_number()) {
    r.attention_factor = o["attention_factor"].get<double>();
  }
  check_frequencies(keys, r);
  return r;
}

ops::RopeConfig parse_rope(ConfigKeys& keys, const DecoderConfig& c) {
  const double theta = keys.number("rope_theta", 10000);
  const Json& scaling = keys.raw("rope_scaling");
  const Json& parameters = keys.raw("rope_parameters");
  if (!parameters.is_null() && !scaling.is_null() && parameters != scaling) {
    keys.refuse("rope_scaling", "must not contradict 'rope_parameters'");
  }
  return parse_rope_object(
      keys, parameters.is_null() ? scaling : parameters, theta, c
  );
}

}  // namespace hearth::models
