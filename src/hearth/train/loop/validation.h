#pragma once
// The loss on held-out data: of a language model the plain cross-entropy,
// whatever else training adds to it.
#include <functional>

#include "hearth/train/loop/session.h"

namespace hearth::train {

struct Validation {
  // Mean over what was scored, tokens or pairs; nan when that is nothing.
  double loss = 0;
  NamedValues means;         // of the objective's metrics
  std::uint64_t tokens = 0;  // that were scored
  bool stopped = false;      // before the end: loss and tokens are of a part
};

struct ValidationHooks {
  // Asked after each pass through the model; true ends it.
  std::function<bool()> stop;
  // Told, as often, what share is done.
  std::function<void(double)> progress;
};

// Over at most train.eval_tokens tokens, in whole rows and at least one (of
// pairs: a pair), the same ones each time; at once `rows` of the longest, of
// shorter ones as many more as have as many tokens.
Validation validate(
    const Session& session,
    std::uint32_t rows,
    const ValidationHooks& hooks = {}
);

// What such a loss is of, by keys of the `train` section, but for "tokens"
// (train.eval_tokens): losses of two measures are not to be compared.
Json validation_measure(const Session& session);

}  // namespace hearth::train
