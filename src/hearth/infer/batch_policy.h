#pragma once
// How many sequences to decode at once. Somebody who waits for one answer gets
// a batch of one; work that nobody waits for gets the batch that measures best.
#include <span>
#include <string>
#include <vector>

#include "hearth/infer/engine.h"

namespace hearth::infer {

struct BatchRule {
  std::vector<int> sizes{1, 2, 4, 8, 16};  // the first is what others must beat
  double min_gain_pct = 10, max_p95_penalty_pct = 10;
};

struct BatchMeasurement {
  int batch = 0;
  double tokens_per_s = 0;
  // What a token costs in a slow step: the 95th percentile of step time, over
  // the tokens that the step makes.
  double p95_ms = 0;
};

// The size with the best gain in tokens/s minus half the p95 penalty, both in
// percent of the first one's, among those that gain and cost as the rule says.
int choose_batch(
    std::span<const BatchMeasurement> measured,
    const BatchRule& rule
);

// Decodes copies of the prompt at each size, a few steps each, and leaves the
// engine's max_batch at the last. Nothing else may run meanwhile. Sizes above
// `most` are left out.
std::vector<BatchMeasurement> measure_batches(
    Engine& engine,
    const std::vector<std::int32_t>& prompt,
    const BatchRule& rule,
    int most
);

// "batch 8 of 1, 2, 4, 8: 412 tokens/s, 4.1x batch 1; p95 2.6 ms a token"
std::string batch_report(
    std::span<const BatchMeasurement> measured,
    int chosen
);

}  // namespace hearth::infer
