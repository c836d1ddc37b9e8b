// Qwen 2 and 2.5: biases on queries, keys and values; optional windows in the
// upper layers.
#include "hearth/models/family.h"

namespace hearth::models {

void start_qwen2(DecoderConfig& c) {
  c.qkv_bias = true;
}

DecoderConfig parse_qwen2(ConfigKeys& keys) {
  DecoderConfig c = parse_common(keys);
  c.rope = parse_rope(keys, c);
  start_qwen2(c);
  const bool windows = keys.boolean("use_sliding_window", false);
  const int window = keys.size("sliding_window", 4096);
  const int first =
      static_cast<int>(keys.integer("max_window_layers", c.layers));
  keys.ignore({"layer_types", "use_mrope"});
  if (!windows) return c;
  c.windows = parse_windows(
      keys, c.layers, window, [](int layer, int from) { return layer >= from; },
      first
  );
  return c;
}

}  // namespace hearth::models
