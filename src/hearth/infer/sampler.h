#pragma once
// Logits to a token id: penalties, temperature, cuts, a draw. Pure over a span
// of numbers; it knows neither models nor text.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "hearth/infer/draw.h"
#include "hearth/infer/sampling_options.h"

namespace hearth::infer {

struct TokenLogProb {
  std::int32_t id = 0;
  float log_prob = 0;
};

class Sampler {
 public:
  // bias is added to the logits of these ids; -inf forbids one.
  explicit Sampler(
      const SamplerOptions& options,
      std::map<std::int32_t, float> bias = {}
  );

  // The order is repetition penalty, frequency and presence penalties, bias,
  // temperature, top-k, typical-p, top-p, min-p. Equal logits rank by id,
  // lowest first. `seen` is what a repetition is of; frequency and presence
  // count only what comes after its first `prompt` tokens. The draw depends on
  // the seed and `position` alone. A logit may be -inf (never chosen); Error
  // for NaN, +inf, or nothing left to choose.
  std::int32_t pick(
      std::span<const float> logits,
      std::span<const std::int32_t> seen,
      std::uint64_t position,
      std::size_t prompt = 0
  );

  // What pick() would draw by at that position; none where it heeds more than
  // the logits and a Draw's options.
  std::optional<Draw> draw(std::uint64_t position) const;

 private:
  struct Candidate {
    std::int32_t id;
    float logit;
  };
  SamplerOptions options_;
  std::map<std::int32_t, float> bias_;
  std::vector<float> scores_;
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;

  double uniform(std::uint64_t position) const;

  std::span<const float> adjusted(
      std::span<const float> logits,
      std::span<const std::int32_t> seen,
      std::size_t prompt
  );
  void penalize_repeats(
      std::span<const float> logits,
      std::span<const std::int32_t> seen
  );
  void take_candidates(std::span<const float> logits);
  template <class Before>
  void keep_first(const Before& before, double top, double wanted);
  void keep_typical(double top);
  void keep_top_p(double top);
};

// The id of the largest logit, lowest id of equal ones; checks as pick() does.
std::int32_t greedy(std::span<const float> logits);

// log of the sum of exp.
double log_sum_exp(std::span<const float> logits);

// The k most likely tokens with the model's own log probabilities, most likely
// first.
std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, int k);

}  // namespace hearth::infer
