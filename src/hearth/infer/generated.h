#pragma once
// A token that was made, and why a text ended. No MLX, so that whoever only
// listens pays for none.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/infer/sampler.h"

namespace hearth::infer {

struct GeneratedToken {
  std::int32_t id = 0;
  std::string text;    // what can be shown now: whole characters only
  float log_prob = 0;  // the model's own, where asked for
  std::vector<TokenLogProb> top;
};

enum class Finish : unsigned char {
  stop,       // a stop id or a stop string
  length,     // max_tokens, or the model's context is full
  cancelled,  // whoever listens said so
};
std::string_view name_of(Finish finish);  // "stop", "length", "cancelled"

}  // namespace hearth::infer
