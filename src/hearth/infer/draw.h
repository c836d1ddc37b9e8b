#pragma once
// How a token is drawn where the logits are, by who has them in another memory:
// the options that are marked `on_device` (sampling_options.h), and what a
// Sampler drew (sampler.h).

namespace hearth::infer {

struct Draw {
  float temperature = 0;  // 0: the most likely token
  int top_k = 0;          // 0: all
  float top_p = 1, min_p = 0;
  float uniform = 0;  // what is drawn, in [0, 1)

  // Only the likeliest are drawn from, and those a device finds by sorting.
  bool ranked() const { return temperature > 0 && (top_k > 0 || top_p < 1); }
  bool operator==(const Draw&) const = default;
};

}  // namespace hearth::infer
