// Llama 2 and 3, SmolLM2, and whatever else calls itself llama.
#include "hearth/models/family.h"

namespace hearth::models {

DecoderConfig parse_llama(ConfigKeys& keys) {
  DecoderConfig c = parse_common(keys);
  c.rope = parse_rope(keys, c);
  c.qkv_bias = c.out_bias = keys.boolean("attention_bias", false);
  c.mlp_bias = keys.boolean("mlp_bias", false);
  return c;
}

}  // namespace hearth::models
