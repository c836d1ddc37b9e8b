#pragma once
// How a token is drawn where the logits are, by who has them in another memory:
// what of a Sampler's options can be done there (sampler.h).

namespace hearth::infer {

struct Draw {
  float temperature = 0;  // 0: the most likely token
  int top_k = 0;          // 0: all
  float top_p = 1, min_p = 0;
  float uniform = 0;  // what is drawn, in [0, 1)
};

}  // namespace hearth::infer
