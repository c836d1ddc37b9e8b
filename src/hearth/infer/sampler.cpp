#include "hearth/infer/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"

namespace hearth::infer {
namespace {

// Where to look again when top-p needs more of the ranking.
constexpr std::size_t kFirstRanked = 256;

// By logit, then by id: a total order, so results never depend on the sort.
constexpr auto kBefore = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};

void refuse(double value, const char* what) {
  throw UsageError(fmt::format("[infer.sampler] {}, got {}", what, value));
}

// NaN fails every comparison, so the largest is found and checked in one go.
float largest_of(std::span<const float> logits) {
  if (logits.empty()) throw UsageError("[infer.sampler] there are no logits");
  float largest = -INFINITY;
  bool number = true;
  for (const float v : logits) {
    number &= v == v;
    largest = v > largest ? v : largest;
  }
  if (!number || largest == INFINITY) {
    const auto bad = std::ranges::find_if(logits, [](float v) {
      return std::isnan(v) || v == INFINITY;
    });
    throw Error(
        fmt::format(
            "[infer.sampler] logits must be numbers, got {} for token {}", *bad,
            bad - logits.begin()
        ),
        "the weights or a kernel are broken: try --dtype fp32 and "
        "HEARTH_ISA=generic"
    );
  }
  if (largest == -INFINITY) {
    throw Error("[infer.sampler] no token is allowed: every logit is -inf");
  }
  return largest;
}

}  // namespace

void SamplerOptions::check() const {
  if (!(temperature >= 0) || !std::isfinite(temperature)) {
    refuse(temperature, "temperature must be 0 or more");
  }
  if (top_k < 0) refuse(top_k, "top_k must be 0 or more");
  if (!(top_p > 0 && top_p <= 1)) refuse(top_p, "top_p must be in (0, 1]");
  if (!(min_p >= 0 && min_p <= 1)) refuse(min_p, "min_p must be in [0, 1]");
  if (!(repeat_penalty > 0) || !std::isfinite(repeat_penalty)) {
    refuse(repeat_penalty, "repeat_penalty must be more than 0");
  }
}

Sampler::Sampler(const SamplerOptions& options) : options_(options) {
  options_.check();
}

std::int32_t greedy(std::span<const float> logits) {
  const float largest = largest_of(logits);
  return static_cast<std::int32_t>(
      std::ranges::find(logits, largest) - logits.begin()
  );
}

// A logit of either sign moves away from being chosen, once for a token
// however often it was seen.
std::span<const float> Sampler::penalized(
    std::span<const float> logits,
    std::span<const std::int32_t> seen
) {
  if (options_.repeat_penalty == 1 || seen.empty()) return logits;
  scores_.assign(logits.begin(), logits.end());
  const auto factor = static_cast<float>(options_.repeat_penalty);
  for (const std::int32_t id : seen) {
    const auto i = static_cast<std::size_t>(id);
    if (id < 0 || i >= scores_.size()) continue;
    const float v = logits[i];
    scores_[i] = v > 0 ? v / factor : v * factor;
  }
  return scores_;
}

// Ranks as many as top-k keeps; without it they stay in the order of ids.
void Sampler::take_candidates(std::span<const float> logits) {
  candidates_.clear();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] == -INFINITY) continue;
    candidates_.push_back({static_cast<std::int32_t>(i), logits[i]});
  }
  const auto k = static_cast<std::size_t>(options_.top_k);
  if (k == 0 || k >= candidates_.size()) return;
  const auto end = candidates_.begin() + options_.top_k;
  std::nth_element(candidates_.begin(), end - 1, candidates_.end(), kBefore);
  candidates_.resize(k);
}

// Ranks only as far as the probability reaches; returns how many are kept.
std::size_t Sampler::keep_top_p(double top, double total) {
  double sum = 0;
  std::size_t kept = 0;
  for (std::size_t ranked = 0; ranked < candidates_.size();) {
    const std::size_t upto =
        std::min(candidates_.size(), std::max(kFirstRanked, 4 * ranked));
    const auto at = [&](std::size_t i) {
      return candidates_.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::partial_sort(at(ranked), at(upto), candidates_.end(), kBefore);
    for (; ranked < upto; ++ranked) {
      sum += std::exp((candidates_[ranked].logit - top) / options_.temperature);
      ++kept;
      if (sum >= options_.top_p * total) return kept;
    }
  }
  return kept;
}

std::int32_t Sampler::pick(
    std::span<const float> logits,
    std::span<const std::int32_t> seen,
    std::uint64_t position
) {
  const auto scores = penalized(logits, seen);
  if (options_.temperature == 0) return greedy(scores);
  const double top = largest_of(scores);
  take_candidates(scores);
  const auto weight = [&](const Candidate& c) {
    return std::exp((c.logit - top) / options_.temperature);
  };
  if (options_.top_p < 1) {
    double total = 0;
    for (const Candidate& c : candidates_) total += weight(c);
    candidates_.resize(keep_top_p(top, total));
  }
  weights_.clear();
  double sum = 0;
  for (const Candidate& c : candidates_) {
    const double w = weight(c);
    sum += w >= options_.min_p ? w : 0;
    weights_.push_back(sum);
  }
  RandomStream random(RandomKey(options_.seed).fold("sample").fold(position));
  const double drawn = random.uniform() * sum;
  // The first whose running sum passes the draw has a weight of its own; a
  // draw that rounds up to the whole sum takes the last such one.
  auto at = std::ranges::upper_bound(weights_, drawn);
  if (at == weights_.end()) at = std::ranges::lower_bound(weights_, sum);
  return candidates_[static_cast<std::size_t>(at - weights_.begin())].id;
}

double log_sum_exp(std::span<const float> logits) {
  const float top = largest_of(logits);
  const double sum = std::accumulate(
      logits.begin(), logits.end(), 0.0,
      [top](double s, float v) { return s + std::exp(v - top); }
  );
  return top + std::log(sum);
}

std::vector<TokenLogProb> top_log_probs(std::span<const float> logits, int k) {
  const double all = log_sum_exp(logits);
  const auto count =
      std::min(static_cast<std::size_t>(std::max(k, 0)), logits.size());
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](std::int32_t i) {
    return logits[static_cast<std::size_t>(i)];
  };
  std::ranges::partial_sort(
      ids, ids.begin() + static_cast<std::ptrdiff_t>(count),
      [&](std::int32_t a, std::int32_t b) {
        return logit(a) != logit(b) ? logit(a) > logit(b) : a < b;
      }
  );
  std::vector<TokenLogProb> out;
  for (std::size_t i = 0; i < count; ++i) {
    out.push_back({ids[i], static_cast<float>(logit(ids[i]) - all)});
  }
  return out;
}

}  // namespace hearth::infer
