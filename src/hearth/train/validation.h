#pragma once
// The loss on held-out data.
#include "hearth/train/session.h"

namespace hearth::train {

struct Validation {
  double loss = 0;  // mean over tokens
  std::uint64_t tokens = 0;
};

// Over at most train.eval_tokens tokens, the same ones each time, `rows` of a
// batch at once.
Validation validate(const Session& session, std::uint32_t rows);

}  // namespace hearth::train
