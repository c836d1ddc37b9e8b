#pragma once
// The first tokens of a model that was just loaded, by the engine that
// generate, chat and serve run.
#include <cstdint>
#include <vector>

#include "hearth/infer/text_model.h"

namespace hearth::cli {

struct FirstWords {
  std::vector<std::int32_t> ids;
  double first_token = 0;  // seconds, the engine's start among them
};

// The likeliest tokens each, at most so many. Throws Error when the model gives
// no numbers.
FirstWords first_words(const infer::TextModel& model, int tokens);

}  // namespace hearth::cli
