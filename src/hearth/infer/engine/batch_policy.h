#pragma once
// How many sequences to decode at once. Somebody who waits for one answer gets
// a batch of one; work that nobody waits for gets the batch that measures best.
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hearth/infer/engine/engine.h"

namespace hearth::infer {

struct BatchRule {
  std::vector<int> sizes{1, 2, 4, 8, 16};  // the first is what others must beat
  double min_gain_pct = 10, max_p95_penalty_pct = 10;
};

struct BatchMeasurement {
  int batch = 0;
  double tokens_per_s = 0;
  // The time of one step.
  double median_ms = 0, p95_ms = 0;

  // How much longer a slow step takes than a usual one, as a ratio.
  double tail() const { return median_ms > 0 ? p95_ms / median_ms : 0; }
};

// The size with the best gain in tokens/s minus half the p95 penalty, both in
// percent of the first one's, among those that gain and cost as the rule says.
// A step of more sequences takes longer and makes more tokens, which the gain
// weighs already; the penalty is for steps that are slow beside their own kind:
// how much more p95 is above the median than in the first one's steps.
int choose_batch(
    std::span<const BatchMeasurement> measured,
    const BatchRule& rule
);

// Decodes copies of the prompt at each size, a few steps each, and leaves the
// engine's max_batch at the last. Nothing else may run meanwhile. Sizes above
// `most` are left out. `go_on` is asked a few times a second; once it says no,
// what was measured so far is all.
std::vector<BatchMeasurement> measure_batches(
    Engine& engine,
    const std::vector<std::int32_t>& prompt,
    const BatchRule& rule,
    int most,
    const std::function<bool()>& go_on = [] { return true; }
);

// "batch 8 of 1, 2, 4, 8: 412 tokens/s, 4.1x batch 1; a step takes 19.4 ms, p95
// 1.04x that, against 1.02x"
std::string batch_report(
    std::span<const BatchMeasurement> measured,
    int chosen
);

}  // namespace hearth::infer
