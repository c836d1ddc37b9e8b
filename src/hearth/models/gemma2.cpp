// Gemma 2: norms around both halves of a block, soft caps, every other layer
// with a window.
#include <cmath>

#include "hearth/models/family.h"

namespace hearth::models {

// What Gemma 2 and 3 share; the caller adds caps and rotary settings.
static DecoderConfig parse_gemma(ConfigKeys& keys) {
  DecoderConfig c = parse_common(keys);
  c.tie = keys.boolean("tie_word_embeddings", true);
  const char* const key =
      keys.has("hidden_activation") ? "hidden_activation" : "hidden_act";
  c.act = parse_activation(keys, key, "gelu_pytorch_tanh");
  c.norm.plus_one = true;
  c.sandwich_norms = true;
  c.embedding_scale = std::sqrt(static_cast<float>(c.dim));
  c.attention_scale = static_cast<float>(
      1 / std::sqrt(keys.number("query_pre_attn_scalar", c.head_dim))
  );
  c.qkv_bias = c.out_bias = keys.boolean("attention_bias", false);
  c.attention_softcap =
      static_cast<float>(keys.number("attn_logit_softcapping", 0));
  c.final_softcap =
      static_cast<float>(keys.number("final_logit_softcapping", 0));
  keys.require("use_bidirectional_attention", false);
  keys.ignore({"cache_implementation"});
  return c;
}

DecoderConfig parse_gemma2(ConfigKeys& keys) {
  DecoderConfig c = parse_gemma(keys);
  if (!keys.has("attn_logit_softcapping")) c.attention_softcap = 50;
  if (!keys.has("final_logit_softcapping")) c.final_softcap = 30;
  c.rope = parse_rope(keys, c);
  c.windows = parse_windows(
      keys, c.layers, keys.size("sliding_window", 4096),
      [](int layer, int) { return layer % 2 == 0; }, 0
  );
  return c;
}

DecoderConfig parse_gemma3(ConfigKeys& keys) {
  DecoderConfig c = parse_gemma(keys);
  c.qk_norm = true;
  const int pattern = static_cast<int>(keys.integer(
      "sliding_window_pattern", keys.integer("_sliding_window_pattern", 6)
  ));
  if (pattern < 1) keys.refuse("sliding_window_pattern", "must be at least 1");
  c.windows = parse_windows(
      keys, c.layers, keys.size("sliding_window", 4096),
      [](int layer, int every) { return (layer + 1) % every != 0; }, pattern
  );
  const Json& parameters = keys.raw("rope_parameters");
  const double theta = keys.number("rope_theta", 1e6);
  const double local = keys.number("rope_local_base_freq", 1e4);
  if (parameters.is_object() && parameters.contains("full_attention")) {
    c.rope = parse_rope_object(keys, parameters["full_attention"], theta, c);
    c.local_rope = parse_rope_object(
        keys, parameters.value("sliding_attention", Json()), local, c
    );
    keys.ignore({"rope_scaling"});
    return c;
  }
  c.rope = parse_rope_object(
      keys, parameters.is_null() ? keys.raw("rope_scaling") : parameters, theta,
      c
  );
  c.local_rope = parse_rope_object(keys, Json(), local, c);
  return c;
}

}  // namespace hearth::models
