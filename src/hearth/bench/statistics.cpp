#include "hearth/bench/statistics.h"

#include <algorithm>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/base/random.h"

namespace hearth::bench {

double quantile(std::span<const double> values, double q) {
  if (values.empty()) {
    throw UsageError(
        "[bench.quantile] there must be at least one value, got none"
    );
  }
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(at));
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] + part * (sorted[above] - sorted[below]);
}

double median(std::span<const double> values) {
  return quantile(values, 0.5);
}

double spread(std::span<const double> values) {
  const double half = (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
  return half / median(values);
}

namespace {

double resampled_median(
    std::span<const double> values,
    RandomStream& random,
    std::vector<double>& scratch
) {
  scratch.resize(values.size());
  for (double& s : scratch) s = values[random.below(values.size())];
  return median(scratch);
}

Interval middle_95(std::span<const double> values) {
  return {quantile(values, 0.025), quantile(values, 0.975)};
}

}  // namespace

Interval ratio_interval(
    std::span<const double> a,
    std::span<const double> b,
    int resamples
) {
  RandomStream random{RandomKey(1)};
  std::vector<double> scratch, ratios;
  for (int i = 0; i < resamples; ++i) {
    const double top = resampled_median(a, random, scratch);
    ratios.push_back(top / resampled_median(b, random, scratch));
  }
  return middle_95(ratios);
}

}  // namespace hearth::bench
