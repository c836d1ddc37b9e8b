#pragma once
// Logits to a token id: penalties, temperature, cuts, a draw. Pure over a span
// of numbers; it knows neither models nor text.
#include <cstdint>
#include <span>
#include <vector>

namespace hearth::infer {

struct SamplerOptions {
  double temperature = 0;     // 0: the most likely token
  int top_k = 0;              // 0: all
  double top_p = 1;           // smallest set that holds this probability
  double min_p = 0;           // of the most likely token's probability
  double repeat_penalty = 1;  // above 1, tokens already there are less likely
  std::uint64_t seed = 0;

  // Throws UsageError.
  void check() const;
};

struct TokenLogProb {
  std::int32_t id = 0;
  float log_prob = 0;
};

class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);

  // The order is penalty, temperature, top-k, top-p, min-p. Equal logits rank
  // by id, lowest first. `seen` is what a repetition is of; the draw depends on
  // the seed and `position` alone. A logit may be -inf (never chosen); Error
  // for NaN, +inf, or nothing left to choose.
  std::int32_t pick(
      std::span<const float> logits,
      std::span<const std::int32_t> seen,
      std::uint64_t position
  );

 private:
  struct Candidate {
    std::int32_t id;
    float logit;
  };
  SamplerOptions options_;
  std::vector<float> scores_;
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;

  std::span<const float> penalized(
      std::span<const float> logits,
      std::span<const std::int32_t> seen
  );
  void take_candidates(std::span<const float> logits);
  std::size_t keep_top_p(double top, double total);
};

// The id of the largest logit, lowest id of equal ones; checks as pick() does.
std::int32_t greedy(std::span<const float> logits);

// log of the sum of exp.
double log_sum_exp(std::span<const float> logits);

// The k most likely tokens with the model's own log probabilities, most likely
// first.
std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, int k);

}  // namespace hearth::infer
