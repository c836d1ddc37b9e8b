// Qwen 3: norms of queries and keys, a head size of its own.
#include "hearth/models/family.h"

namespace hearth::models {

void start_qwen3(DecoderConfig& c) {
  c.qk_norm = true;
}

DecoderConfig parse_qwen3(ConfigKeys& keys) {
  if (!keys.has("head_dim")) keys.refuse("head_dim", "must be given");
  DecoderConfig c = parse_common(keys);
  c.rope = parse_rope(keys, c);
  start_qwen3(c);
  c.qkv_bias = c.out_bias = keys.boolean("attention_bias", false);
  const bool windows = keys.boolean("use_sliding_window", false);
  const int window = keys.size("sliding_window", 4096);
  const int first =
      static_cast<int>(keys.integer("max_window_layers", c.layers));
  keys.ignore({"layer_types"});
  if (!windows) return c;
  c.windows = parse_windows(
      keys, c.layers, window, [](int layer, int from) { return layer >= from; },
      first
  );
  return c;
}

}  // namespace hearth::models
