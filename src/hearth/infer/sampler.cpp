#include "hearth/infer/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

// What no float holds becomes the largest that one does, so that no option can
// make a logit infinite; -inf, which forbids a token, stays.
float narrowed(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (value == -INFINITY) return -INFINITY;
  return static_cast<float>(std::clamp(value, -kMost, kMost));
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

Sampler::Sampler(
    const SamplerOptions& options,
    std::map<std::int32_t, float> bias
)
    : options_(options), bias_(std::move(bias)) {
  options_.check();
  for (const auto& [id, value] : bias_) {
    if (!std::isnan(value) && value != INFINITY) continue;
    throw UsageError(
        fmt::format(
            "[infer.sampler] a bias must be a number or -inf, got {}", value
        )
    );
  }
}

std::int32_t greedy(std::span<const float> logits) {
  const float largest = largest_of(logits);
  return static_cast<std::int32_t>(
      std::ranges::find(logits, largest) - logits.begin()
  );
}

// A logit of either sign moves away from being chosen, once for a token
// however often it was seen.
void Sampler::penalize_repeats(
    std::span<const float> logits,
    std::span<const std::int32_t> seen
) {
  using Range = std::numeric_limits<float>;
  const double factor = static_cast<float>(
      std::clamp<double>(options_.repeat_penalty, Range::min(), Range::max())
  );
  for (const std::int32_t id : seen) {
    const auto i = static_cast<std::size_t>(id);
    if (id < 0 || i >= scores_.size()) continue;
    const double v = logits[i];
    scores_[i] = narrowed(v > 0 ? v / factor : v * factor);
  }
}

std::span<const float> Sampler::adjusted(
    std::span<const float> logits,
    std::span<const std::int32_t> seen,
    std::size_t prompt
) {
  const bool counts =
      options_.frequency_penalty != 0 || options_.presence_penalty != 0;
  const bool repeats = options_.repeat_penalty != 1 && !seen.empty();
  if (!counts && !repeats && bias_.empty()) return logits;
  scores_.assign(logits.begin(), logits.end());
  if (repeats) penalize_repeats(logits, seen);
  const auto add = [&](std::int32_t id, double value) {
    const auto i = static_cast<std::size_t>(id);
    if (id < 0 || i >= scores_.size()) return;
    scores_[i] = narrowed(double{scores_[i]} + narrowed(value));
  };
  if (counts) {
    std::map<std::int32_t, int> made;
    for (const auto id : seen.subspan(std::min(prompt, seen.size()))) {
      ++made[id];
    }
    // However large, a penalty only makes a token less likely.
    constexpr double kMost = 1e300;
    for (const auto& [id, times] : made) {
      const double off =
          times * options_.frequency_penalty + options_.presence_penalty;
      add(id, -std::clamp(off, -kMost, kMost));
    }
  }
  for (const auto& [id, value] : bias_) add(id, value);
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

// Ranks only as far as the probability reaches, and keeps those.
template <class Before>
void Sampler::keep_first(const Before& before, double top, double wanted) {
  double sum = 0;
  for (std::size_t ranked = 0; ranked < candidates_.size();) {
    const std::size_t upto =
        std::min(candidates_.size(), std::max(kFirstRanked, 4 * ranked));
    const auto at = [&](std::size_t i) {
      return candidates_.begin() + static_cast<std::ptrdiff_t>(i);
    };
    std::partial_sort(at(ranked), at(upto), candidates_.end(), before);
    for (; ranked < upto; ++ranked) {
      sum += std::exp((candidates_[ranked].logit - top) / options_.temperature);
      if (sum >= wanted) return candidates_.resize(ranked + 1);
    }
  }
}

// Locally typical sampling: tokens whose surprise is nearest to what the
// distribution has on average, until they hold the probability.
void Sampler::keep_typical(double top) {
  double total = 0, sum = 0;
  for (const Candidate& c : candidates_) {
    const double x = (c.logit - top) / options_.temperature;
    const double weight = std::exp(x);
    total += weight;
    if (weight > 0) sum += x * weight;
  }
  // Entropy is log(total) - mean, the surprise of one log(total) - x.
  const double mean = sum / total;
  const auto away = [&](const Candidate& c) {
    return std::abs((c.logit - top) / options_.temperature - mean);
  };
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const double x = away(a), y = away(b);
    return x != y ? x < y : kBefore(a, b);
  };
  keep_first(before, top, options_.typical_p * total);
}

void Sampler::keep_top_p(double top) {
  double total = 0;
  for (const Candidate& c : candidates_) {
    total += std::exp((c.logit - top) / options_.temperature);
  }
  keep_first(kBefore, top, options_.top_p * total);
}

std::int32_t Sampler::pick(
    std::span<const float> logits,
    std::span<const std::int32_t> seen,
    std::uint64_t position,
    std::size_t prompt
) {
  const auto scores = adjusted(logits, seen, prompt);
  if (options_.temperature == 0) return greedy(scores);
  const double top = largest_of(scores);
  take_candidates(scores);
  const std::size_t all = candidates_.size();
  if (options_.typical_p < 1) keep_typical(top);
  if (options_.top_p < 1) keep_top_p(top);
  // The order of ids, so that nearly equal distributions draw the same token.
  if (options_.top_k > 0 || candidates_.size() < all) {
    std::ranges::sort(candidates_, {}, &Candidate::id);
  }
  weights_.clear();
  for (const Candidate& c : candidates_) {
    weights_.push_back(std::exp((c.logit - top) / options_.temperature));
  }
  const double least = options_.min_p * std::ranges::max(weights_);
  double sum = 0;
  for (double& w : weights_) w = sum += w >= least ? w : 0;
  const double drawn = uniform(position) * sum;
  // The first whose running sum passes the draw has a weight of its own; a
  // draw that rounds up to the whole sum takes the last such one.
  auto at = std::ranges::upper_bound(weights_, drawn);
  if (at == weights_.end()) at = std::ranges::lower_bound(weights_, sum);
  return candidates_[static_cast<std::size_t>(at - weights_.begin())].id;
}

double Sampler::uniform(std::uint64_t position) const {
  RandomStream random(RandomKey(options_.seed).fold("sample").fold(position));
  return random.uniform();
}

std::optional<Draw> Sampler::draw(std::uint64_t position) const {
  const SamplerOptions& o = options_;
  const auto left_to_host = [&](const SamplingField& field) {
    return !field.on_device && field.get(o) != field.get({});
  };
  if (!bias_.empty() || std::ranges::any_of(sampling_fields(), left_to_host)) {
    return std::nullopt;
  }
  Draw out;
  out.temperature = static_cast<float>(o.temperature);
  out.top_k = o.top_k;
  out.top_p = static_cast<float>(o.top_p);
  out.min_p = static_cast<float>(o.min_p);
  if (o.temperature > 0) out.uniform = static_cast<float>(uniform(position));
  return out;
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
