// Mistral: Llama with a window over all layers.
#include "hearth/models/family.h"

namespace hearth::models {

DecoderConfig parse_mistral(ConfigKeys& keys) {
  DecoderConfig c = parse_common(keys);
  c.rope = parse_rope(keys, c);
  if (keys.has("sliding_window")) {
    c.windows.assign(c.windows.size(), keys.size("sliding_window"));
  }
  keys.ignore({"sliding_window"});
  return c;
}

}  // namespace hearth::models
